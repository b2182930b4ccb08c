from fleet.adapters.redis.client.functions import functions, marked

SOURCE = "#!lua name=fleet\nlocal function a() end\nredis.register_function('fleet_a', a)\n"


def test_library_and_functions_carry_the_mark_of_their_code() -> None:
    made = marked(SOURCE)
    assert made.library == f"fleet_{made.mark}"
    assert made.code.splitlines()[0] == f"#!lua name={made.library}"
    assert f"redis.register_function('{made.name('fleet_a')}', a)" in made.code


def test_other_code_has_another_mark() -> None:
    assert marked(SOURCE).mark != marked(SOURCE + "-- changed\n").mark


def test_every_function_of_this_version_is_marked() -> None:
    own = functions()
    registered = [line for line in own.code.splitlines() if line.startswith("redis.register_function(")]
    assert registered
    assert all(f"_{own.mark}'," in line for line in registered)
