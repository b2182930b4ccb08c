# For the Makefiles here and in fleet/roles/edge/transport/native: flags, and how to fuzz. Before the `include`, a Makefile
# sets FUZZED and HEADERS (the sources besides fuzz.c), FUZZ_ROUNDS, and FUZZ_OPTIONS for libFuzzer.
SHARED := $(dir $(lastword $(MAKEFILE_LIST)))
BUILD ?= build
CFLAGS ?= -O2 -g
FUZZ_SECONDS ?= 10
FUZZ_SEED ?= 1
CLANG ?= clang
.DEFAULT_GOAL := all

WARNINGS = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wcast-qual \
	   -Wwrite-strings -Wformat=2 -Wundef -Wvla
override CFLAGS += -std=gnu11 -fPIC -fvisibility=hidden -fstack-protector-strong $(WARNINGS) -I$(SHARED)
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

$(BUILD):
	@mkdir -p $@

$(BUILD)/fuzz_random: fuzz.c fuzz_random.c $(SHARED)fuzz_random.h $(FUZZED) $(HEADERS) Makefile | $(BUILD)
	$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ fuzz.c fuzz_random.c $(FUZZED) -lcrypto

$(BUILD)/fuzz: fuzz.c $(FUZZED) $(HEADERS) Makefile | $(BUILD)
	$(CLANG) $(CFLAGS) -fsanitize=fuzzer $(SANITIZE) $(LDFLAGS) -o $@ fuzz.c $(FUZZED) -lcrypto

ifneq ($(shell command -v $(CLANG)),)
fuzz: $(BUILD)/fuzz
	@mkdir -p $(BUILD)/corpus
	cd $(BUILD) && ./fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=5 -print_final_stats=1 -seed=$(FUZZ_SEED) \
		$(FUZZ_OPTIONS) corpus
else
fuzz: fuzz-random
endif

fuzz-random: $(BUILD)/fuzz_random
	$(BUILD)/fuzz_random $(FUZZ_ROUNDS) $(FUZZ_SEED)

clean:
	rm -rf $(BUILD)

.PHONY: all fuzz fuzz-random clean
