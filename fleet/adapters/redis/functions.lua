#!lua name=fleet

-- Every step of a session or a tool call is one function: one round trip, and no other client's command in between. All
-- keys of one call have the same hash tag, the shard, so that one node of a cluster holds them.
--
-- In the comments, K are the keys and A the arguments of a function. Key names: fleet/adapters/redis/keys.py. The
-- fields `gone`, `ga`, `sorry` and `se` of a device: docs/adr/0023-ends-of-sessions.md.

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Seconds since 1970, as a device's trace stores them (fleet/adapters/redis/devices/traces.py).
local function seconds() return redis.call('TIME')[1] end

-- Whether `worker` with `fence` still owns the shard.
local function owns(own, worker, fence)
  local lease = redis.call('HMGET', own, 'w', 'f')
  return lease[1] == worker and lease[2] == fence
end

local function fenced()
  return redis.error_reply('FENCED this worker no longer owns the shard')
end

-- Events that a shard keeps for control; the oldest give way to newer ones, and control counts them.
local MOST_EVENTS = '10000'

-- Writes an event of a device into the shard's stream of events. The stream exists only while control wants events, so
-- this is also the question whether it does: without the stream nothing is written (docs/adr/0042-events.md).
local function emit(stream, kind, mac, data)
  redis.call('XADD', stream, 'NOMKSTREAM', 'MAXLEN', '~', MOST_EVENTS, '*', 'k', kind, 'm', mac, 'd', data)
end

-- JSON of an object with texts: field, text, …
local function texts(...)
  local pair, parts = {...}, {}
  for i = 1, #pair, 2 do parts[#parts + 1] = '"' .. pair[i] .. '":' .. cjson.encode(pair[i + 1]) end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- Life in seconds of a device's record; a function renews it when an hour of it has passed.
local RENEWED_AFTER = 3600

-- Writes a message into an edge's inbox and returns the id of the entry. A living edge renews the life of its inbox.
local function put_message(edge, text, mark, longest, life)
  local inbox = 'mb:{e:' .. edge .. '}'
  local id = redis.call('XADD', inbox, 'NOMKSTREAM', 'MAXLEN', '~', longest, '*', 'm', text, 'k', mark)
  if not id then
    id = redis.call('XADD', inbox, '*', 'm', text, 'k', mark)
    redis.call('EXPIRE', inbox, life)
  end
  return id
end

-- Sends an edge a message: `Inboxes.post` in fleet/adapters/redis/shards/inbox.py makes the arguments from `at` on:
-- message or '' for none, mark, longest inbox, life s. Not in a Cluster, where the inbox is on another node. Returns the
-- time in ms as text: the id of an entry begins with it, so that the caller need not ask for it.
local function post(edge, A, at, message)
  if A[at] == '' then return string.format('%d', now()) end
  return string.match(put_message(edge, message or A[at], A[at + 1], A[at + 2], A[at + 3]), '^%d+')
end

-- Sends an edge all messages of `Inboxes.post_all`: edge, longest inbox, life s, their number, message, mark, … Returns
-- the place of the argument after them.
local function post_all(A, at)
  local beyond = at + 4 + 2 * tonumber(A[at + 3])
  for one = at + 4, beyond - 1, 2 do put_message(A[at], A[one], A[one + 1], A[at + 1], A[at + 2]) end
  return beyond
end

-- K: own, fence  A: worker, ttl ms, fence of an owner that lost its MQTT session or ''.
-- Takes or renews a lease. Returns {1, fence} when the worker holds it, {0, owner} when another one does. A lease with
-- the fence of an owner that lost its MQTT session is taken over; a lease that was taken since has another fence and
-- stays. A new fence is at least the time in ms, so that it is above all earlier ones even if Redis lost the counter.
local function lease(K, A)
  local held = redis.call('HMGET', K[1], 'w', 'f')
  if held[1] == A[1] then
    redis.call('PEXPIRE', K[1], A[2])
    return {1, held[2]}
  end
  if held[1] and held[2] ~= A[3] then return {0, held[1]} end
  local fence = string.format('%d', math.max(tonumber(redis.call('GET', K[2]) or '0') + 1, now()))
  redis.call('SET', K[2], fence)
  redis.call('HSET', K[1], 'w', A[1], 'f', fence)
  redis.call('PEXPIRE', K[1], A[2])
  return {1, fence}
end

-- K: own  A: worker, fence, ttl ms.  Renews a lease; returns 0 when the worker does not hold it any more.
local function renew(K, A)
  if not owns(K[1], A[1], A[2]) then return 0 end
  return redis.call('PEXPIRE', K[1], A[3])
end

-- K: own  A: worker.  Gives the lease back, if it is still held.
local function release(K, A)
  if redis.call('HGET', K[1], 'w') ~= A[1] then return 0 end
  return redis.call('DEL', K[1])
end

-- K: workers, loads  A: worker, ttl ms, shards that it owns
-- Records a worker's heartbeat, and removes the workers whose last heartbeat is older than the ttl. Returns {worker,
-- its shards, ms since its heartbeat, …}.
local function announce(K, A)
  local at = now()
  redis.call('ZADD', K[1], at, A[1])
  redis.call('HSET', K[2], A[1], A[3])
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', K[1], '-inf', at - tonumber(A[2]))) do
    redis.call('ZREM', K[1], dead)
    redis.call('HDEL', K[2], dead)
  end
  local answer, living = {}, redis.call('ZRANGE', K[1], 0, -1, 'WITHSCORES')
  for i = 1, #living, 2 do
    answer[#answer + 1] = living[i]
    answer[#answer + 1] = redis.call('HGET', K[2], living[i]) or '0'
    answer[#answer + 1] = string.format('%d', at - tonumber(living[i + 1]))
  end
  return answer
end

-- K: workers, loads  A: worker.  Removes a worker that stops.
local function retire(K, A)
  redis.call('HDEL', K[2], A[1])
  return redis.call('ZREM', K[1], A[1])
end

-- A new generation is above all that were ever given for its MAC. The record of earlier ones may have expired, so a new
-- one is at least the time, in seconds since 2020.
local function next_generation(known)
  return string.format('%d', math.max(tonumber(known or '0') + 1, seconds() - 1577836800))
end

-- The generation in a device's user name. 0: the name has none, so its password proves no ownership; nil: no name is
-- known.
local function generation_of(user)
  if not user or user == '' then return nil end
  return tonumber(string.match(user, '^device%.[^.]+%.%a+%.(%d+)$') or '0')
end

-- The generation of a device's password, and whether the broker reported it. The broker reports the user name of the
-- last connection (`cu`, for the epoch `cep`); without a report it is the generation that bootstrap gave out last
-- (`kg`).
local function held_of(user, reported, epoch, given)
  local told = reported == epoch and generation_of(user)
  return told or tonumber(given or '0'), told and true or false
end

local function held_by(device)
  local known = redis.call('HMGET', device, 'cu', 'cep', 'ep', 'kg')
  return held_of(known[1], known[2], known[3], known[4])
end

-- The generation that a device's password should have, from that of its admission.
local function wanted(generation) return math.max(tonumber(generation or '1'), 1) end

-- A MAC that never connected takes one place of its shard and one of its source: the address that first asked with the
-- MAC (IPv6: its /64). Both are sorted sets of MACs by the time of their last bootstrap. A place is free an hour after
-- that, so the set of a source needs no cleanup: it expires. The device's field `src` holds the source.
local function share_of(young, source) return young .. ':' .. source end

-- Frees the place of a MAC, if it has one.
local function give_back(young, device, mac)
  local source = redis.call('HGET', device, 'src')
  if source then
    redis.call('ZREM', share_of(young, source), mac)
    redis.call('HDEL', device, 'src')
  end
  redis.call('ZREM', young, mac)
end

-- Takes or keeps the places of a MAC; the caller stores `source`.
local function take_place(young, mac, source, life, at, has_place)
  local share = share_of(young, source)
  redis.call('ZADD', young, at, mac)
  redis.call('ZADD', share, at, mac)
  if not has_place then redis.call('ZREMRANGEBYSCORE', share, '-inf', at - life) end
  redis.call('EXPIRE', share, life)
end

-- Removes some MACs that never connected within their hour. What an operator decided about them stays.
local function tidy_young(young, seen, life)
  for _, mac in ipairs(redis.call('ZRANGEBYSCORE', young, '-inf', seconds() - life, 'LIMIT', 0, 50)) do
    redis.call('ZREM', young, mac)
    redis.call('ZREM', seen, mac)
  end
end

-- Why there is no place for one more MAC of a source, and the set that is full; nil if there is a place.
local function crowded(young, source, life, most, most_of_one)
  local living, share = '(' .. seconds() - life, share_of(young, source)
  local taken = redis.call('ZCOUNT', young, living, '+inf')
  -- A site behind one address may switch on all its devices at once, as long as half of the places are free.
  if source ~= '' and 2 * taken >= most and redis.call('ZCOUNT', share, living, '+inf') >= most_of_one then
    return 'no place for its address', share
  end
  if taken >= most then return 'no place', young end
end

-- Removes the oldest MAC of a full set; returns whether it could. Only for the policy `open`, under which no MAC has a
-- pin to lose. A MAC that was pinned under an earlier policy stays for its hour.
local function crowd_out(full, young, seen, prefix)
  local mac = redis.call('ZRANGE', full, 0, 0)[1]
  if not mac or redis.call('EXISTS', prefix .. 'o:' .. mac) == 1 then return false end
  give_back(young, prefix .. 'd:' .. mac, mac)
  redis.call('ZREM', full, mac)
  redis.call('ZREM', seen, mac)
  redis.call('DEL', prefix .. 'd:' .. mac)
  return true
end

-- Makes room for one more claim of a source. If the source has its maximum, its own oldest claim is deleted; if the MAC
-- has its maximum, the oldest claim of the source with the most claims. Among equal sources, the one whose oldest claim
-- was repeated least recently loses it.
local function make_room(claims, client, source, most, most_of_one)
  local all, total, counts, oldest = redis.call('HGETALL', claims), 0, {}, {}
  for i = 1, #all, 2 do
    local last, from = string.match(all[i + 1], '^%d+ (%d+) %d+ ?(.*)$')
    if all[i] ~= client then
      total, counts[from] = total + 1, (counts[from] or 0) + 1
      last = tonumber(last)
      if not oldest[from] or last < oldest[from][2] then oldest[from] = {all[i], last} end
    end
  end
  local loser = nil
  if (counts[source] or 0) >= most_of_one then
    loser = source
  elseif total >= most then
    for from, count in pairs(counts) do
      local more = not loser or count > counts[loser]
      if more or (count == counts[loser] and oldest[from][2] < oldest[loser][2]) then loser = from end
    end
  end
  if loser then redis.call('HDEL', claims, oldest[loser][1]) end
end

-- Records that a Client-Id asks with a MAC of another owner: `first last count address` by Client-Id, a few of each
-- address.
local function note_claim(claims, client, source, most, most_of_one, life)
  local known = redis.call('HGET', claims, client)
  local first, count, from = string.match(known or '', '^(%d+) %d+ (%d+) ?(.*)$')
  if from ~= source then make_room(claims, client, source, most, most_of_one) end
  redis.call('HSET', claims, client,
    string.format('%d %d %d %s', first or seconds(), seconds(), tonumber(count or '0') + 1, source))
  redis.call('EXPIRE', claims, life)
end

-- The list of claimed MACs and the sources that claim them covers all shards, in keys of its own: the pairs `MAC
-- source` by time, the MACs of each source by time, and the sources by their number of MACs. Among sources with equal
-- numbers, the one that was quiet longest is last; so it is the first to lose a pair.
local function weigh(sources, source)
  local own = sources .. ':' .. source
  local newest = redis.call('ZRANGE', own, -1, -1, 'WITHSCORES')[2]
  if not newest then return redis.call('ZREM', sources, source) end
  redis.call('ZADD', sources, string.format('%d', redis.call('ZCARD', own) * 2 ^ 34 - newest), source)
end

local function drop_claimed(pairs_, sources, mac, source)
  redis.call('ZREM', pairs_, mac .. ' ' .. source)
  redis.call('ZREM', sources .. ':' .. source, mac)
  weigh(sources, source)
end

-- K: pairs, sources  A: MAC, source, most pairs, most of one source
-- Adds a MAC that a source claims to the list. Returns {MAC, source} of the pair that was removed for it, or {}.
local function claimed(K, A)
  local own = K[2] .. ':' .. A[2]
  redis.call('ZADD', K[1], seconds(), A[1] .. ' ' .. A[2])
  redis.call('ZADD', own, seconds(), A[1])
  weigh(K[2], A[2])
  local loser = redis.call('ZCARD', own) > tonumber(A[4]) and A[2]
  if not loser and redis.call('ZCARD', K[1]) > tonumber(A[3]) then loser = redis.call('ZREVRANGE', K[2], 0, 0)[1] end
  if not loser then return {} end
  local mac = redis.call('ZRANGE', K[2] .. ':' .. loser, 0, 0)[1]
  drop_claimed(K[1], K[2], mac, loser)
  return {mac, loser}
end

-- K: pairs, sources  A: MAC, source.  Removes a pair from the list.
local function unclaimed(K, A)
  drop_claimed(K[1], K[2], A[1], A[2])
  return {1}
end

-- K: claims of a MAC  A: source.  Deletes the claims of a source; returns how many there were.
local function forget_claims(K, A)
  local all, gone = redis.call('HGETALL', K[1]), 0
  for i = 1, #all, 2 do
    if string.match(all[i + 1], '^%d+ %d+ %d+ ?(.*)$') == A[1] then gone = gone + redis.call('HDEL', K[1], all[i]) end
  end
  return {gone}
end

-- K: admission, device, …, claims (5), mark of a refused claim (6)  A: as `boot`  o: fields of its admission
-- lack: why there is no place for it, or nil
-- Decides about a client under every policy but `open`, and pins it if it is the first.
-- Returns {verdict, generation, 1 if the client has a claim now, when another client asked with its MAC before or nil}.
local function judge(K, A, o, connected, lack)
  if o.bound and (o.client or '') == '' then
    redis.call('HSET', K[1], 'client', A[2])
    return {'admitted', wanted(o.gen), 0}
  end
  if o.bound and o.client == A[2] then return {'admitted', wanted(o.gen), 0} end
  if not o.bound and not o.unbound and (A[1] == 'first' or connected) then
    if lack then return {lack, 0, 0} end
    local generation, new = next_generation(o.gen), redis.call('EXISTS', K[1]) == 0
    redis.call('HSET', K[1], 'bound', A[6], 'client', A[2], 'how', connected and 'kept' or 'first', 'gen', generation)
    if new and not connected then redis.call('EXPIRE', K[1], A[10]) end
    return {'admitted', generation, 0}
  end
  local claims = 0
  if o.bound or o.unbound then
    redis.call('HINCRBY', K[1], 'others', 1)
    redis.call('HSET', K[1], 'otherat', seconds())
    if redis.call('EXISTS', K[6]) == 1 then return {'refused', 0, 0, o.otherat} end
    note_claim(K[5], A[2], A[4], tonumber(A[12]), tonumber(A[13]), A[14])
    claims = 1
  end
  return {(A[1] ~= 'closed' or A[5] == '1') and 'asked' or 'refused', 0, claims, o.otherat}
end

-- Writes the event of a client that was not served. Strangers must not displace the events of devices: a MAC has one in
-- a minute, and MACs without an owner have one in a second together.
local function emit_refusal(A, verdict, claims, last)
  local stream = A[7] .. 'ev'
  if last and seconds() - last < 60 then return end
  if not last and not redis.call('SET', stream .. 'q', '', 'NX', 'EX', 1) then return end
  local kind = claims == 1 and 'device.claimed' or verdict == 'asked' and 'device.waiting' or 'device.refused'
  emit(stream, kind, A[3], texts('reason', verdict, 'client', A[2], 'address', A[4]))
end

-- Tenants share the queue of operators' calls, the list of their records, and reminders: a tenant takes one more place
-- only while it has fewer than are free (fleet/core/shared_places.py), so nobody can take what a newcomer needs. While less than half
-- of the places are taken, that is so for every tenant, and nobody counts. Beyond it, a hash beside the list counts: at
-- `len` the places that are taken, at `a<tenant>` those of a tenant, and in the queue at `jobs` and `j<tenant>` those of
-- jobs. It is no truth of its own: where it is missing, or `len` is not the length of the list, it is made again from
-- what the list says; and it lives for a minute only, as an earlier version of these functions does not keep it.
local COUNTED_SECONDS = 60

-- Opens the counts of a list. `ample`: nobody can have too much, so they need not be known.
local function open_counts(list, taken, ample, recount)
  local counts = {key = list .. 'n', before = {}, changes = {}}
  local length = tonumber(redis.call('HGET', counts.key, 'len') or '-1')
  counts.known = length == taken
  if counts.known then return counts end
  if length >= 0 then redis.call('DEL', counts.key) end
  if ample then return counts end
  local found = recount(list)
  for field, count in pairs(found) do redis.call('HSET', counts.key, field, count) end
  redis.call('EXPIRE', counts.key, COUNTED_SECONDS)
  counts.known = true
  return counts
end

local function count_of(counts, field)
  local before = counts.before
  before[field] = before[field] or tonumber(redis.call('HGET', counts.key, field) or '0')
  return before[field] + (counts.changes[field] or 0)
end

local function add_count(counts, field, more) counts.changes[field] = (counts.changes[field] or 0) + more end

local function close_counts(counts)
  if not counts.known then return end
  for field, more in pairs(counts.changes) do
    if more ~= 0 then redis.call('HINCRBY', counts.key, field, more) end
  end
end

-- What changes when a call of a tenant comes into the queue or leaves it.
local function count_call(counts, tenant, job, more)
  add_count(counts, 'len', more)
  add_count(counts, 'a' .. tenant, more)
  if job then
    add_count(counts, 'jobs', more)
    add_count(counts, 'j' .. tenant, more)
  end
end

-- Reminders of a device are JSON by id in a hash. The sorted set of the shard has each as `mac|id`, by the time in ms when
-- it is looked at next. Of each device one is delivered at a time: the hash of those under way has, by MAC, its id, the
-- fence of its owner, when that took it, how often it was taken, and when its delivery began. A device's field `rw` has
-- the ids that wait until it connects or begins a session (docs/adr/0054-reminders.md).
local REMINDER = '^(%S+) (%S+) (%d+) (%d+) (%d+)$'

-- Returns the tenant of a device, 0 for that of the site; `prefix` is that of the shard's keys.
local function device_tenant(prefix, mac) return redis.call('HGET', prefix .. 'd:' .. mac, 'ten') or '0' end

local function recount_reminders(due)
  local counts, prefix = {changes = {len = 0}}, string.match(due, '^(.*)rdue$')
  for _, member in ipairs(redis.call('ZRANGE', due, 0, -1)) do
    count_call(counts, device_tenant(prefix, string.match(member, '^[^|]*')), nil, 1)
  end
  return counts.changes
end

-- K: reminders of a device, due reminders, those under way  A: mac, id, …; without an id all of them
-- Deletes reminders; returns how many there were.
local function reminders_cancel(K, A)
  local ids, gone = {unpack(A, 2)}, 0
  if #A == 1 then ids = redis.call('HKEYS', K[1]) end
  local begun = string.match(redis.call('HGET', K[3], A[1]) or '', REMINDER)
  local counts = open_counts(K[2], redis.call('ZCARD', K[2]), true)
  local tenant = counts.known and device_tenant(string.match(K[2], '^(.*)rdue$'), A[1])
  for _, id in ipairs(ids) do
    gone = gone + redis.call('HDEL', K[1], id)
    local removed = redis.call('ZREM', K[2], A[1] .. '|' .. id)
    if counts.known then count_call(counts, tenant, nil, -removed) end
    if begun == id then redis.call('HDEL', K[3], A[1]) end
  end
  close_counts(counts)
  return gone
end

-- Looks again at the reminders of a device that wait for it; `prefix` is that of the shard's keys.
local function wake_reminders(prefix, mac, waiting, at)
  redis.call('HDEL', prefix .. 'd:' .. mac, 'rw')
  for id in string.gmatch(waiting, '%S+') do
    redis.call('ZADD', prefix .. 'rdue', 'XX', string.format('%d', at), mac .. '|' .. id)
  end
end

-- K: own, reminders of the device, due reminders, mark of the call that asks for it
-- A: worker, fence, mac, id, JSON, due ms, life of the mark ms, most of a device, most of a shard, share of a device
--    while its tenant has half of what it may have
-- Keeps a reminder, once for its id. While less than a quarter of the places are taken, each tenant may have more. Returns {SET, JSON}; {KNOWN, JSON or '' if it is over} for one that was kept
-- before; {DEVICE} or {SITE} if there is no place.
local function reminder_set(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  if redis.call('EXISTS', K[4]) == 1 then return {'KNOWN', redis.call('HGET', K[2], A[4]) or ''} end
  local own, all = redis.call('HLEN', K[2]), redis.call('ZCARD', K[3])
  if own >= tonumber(A[8]) then return {'DEVICE', ''} end
  local most, tenant = tonumber(A[9]), device_tenant(string.match(K[3], '^(.*)rdue$'), A[3])
  local ample = 4 * (all + 1) <= most
  local counts = open_counts(K[3], all, ample, recount_reminders)
  if not ample then
    local held = count_of(counts, 'a' .. tenant)
    local room = math.ceil((most - all - held) / 2)
    if room < 1 or (held >= room and own >= tonumber(A[10])) then return {'SITE', ''} end
  end
  count_call(counts, tenant, nil, 1)
  close_counts(counts)
  redis.call('HSET', K[2], A[4], A[5])
  redis.call('ZADD', K[3], A[6], A[3] .. '|' .. A[4])
  redis.call('SET', K[4], '', 'PX', A[7])
  return {'SET', A[5]}
end

-- K: own, due reminders, those under way
-- A: worker, fence, prefix of the shard's keys, free places, ms for which a claim counts, 1 if this owner looks first,
--    how many are looked at; of each tenant with places: tenant, places
-- Claims reminders that are due, and those that an earlier owner had begun. A tenant takes one more place only while it
-- has fewer than are free; what finds none goes behind all others that are due, so that each is looked at. Those of a
-- device whose record expired are deleted. Returns {time ms, time of the next look ms or ''}, and of each claimed one:
-- mac, JSON, time zone of the device or '', when its delivery began, how often it was claimed, tenant.
local function reminders_claim(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local at, answer, claimed = now(), {}, A[6] == '1' and redis.call('HGETALL', K[3]) or {}
  local free, held = tonumber(A[4]), {}
  for i = 8, #A, 2 do held[A[i]] = tonumber(A[i + 1]) end
  for i = 1, #claimed, 2 do
    local id, fence = string.match(claimed[i + 1], REMINDER)
    if fence ~= A[2] then redis.call('ZADD', K[2], 'XX', string.format('%d', at), claimed[i] .. '|' .. id) end
  end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', K[2], '-inf', at, 'LIMIT', 0, A[7])) do
    local mac, id = string.match(member, '^(.-)|(.+)$')
    local tenant = device_tenant(A[3], mac)
    local reminder = redis.call('HGET', A[3] .. 'rem:' .. mac, id)
    local begun, fence, since, tries, first = string.match(redis.call('HGET', K[3], mac) or '', REMINDER)
    if not reminder or redis.call('EXISTS', A[3] .. 'd:' .. mac) == 0 then
      reminders_cancel({A[3] .. 'rem:' .. mac, K[2], K[3]}, {mac, id})
    elseif begun and at - since < tonumber(A[5]) and (begun ~= id or fence == A[2]) then
      redis.call('ZADD', K[2], string.format('%d', at + 2000), member)
    elseif (held[tenant] or 0) >= free then
      redis.call('ZADD', K[2], string.format('%d', at), member)
    else
      free, held[tenant] = free - 1, (held[tenant] or 0) + 1
      if begun ~= id then tries, first = 0, at end
      redis.call('HSET', K[3], mac, string.format('%s %s %d %d %d', id, A[2], at, tries + 1, first))
      redis.call('ZADD', K[2], string.format('%d', at + A[5]), member)
      local zone = redis.call('HGET', A[3] .. 'o:' .. mac, 'tz') or ''
      for _, part in ipairs({mac, reminder, zone, string.format('%d', first), tries + 1, tenant}) do
        answer[#answer + 1] = part
      end
    end
  end
  local following = redis.call('ZRANGE', K[2], 0, 0, 'WITHSCORES')[2] or ''
  return {string.format('%d', at), following, unpack(answer)}
end

-- K: own, reminders of the device, due reminders, those under way, device
-- A: worker, fence, mac, id, when its delivery began, ms of the next look or '' for the end, JSON as it is kept from now
--    on or '', what it waits for: `offline`, `session` or ''
-- Ends the delivery of a reminder. If the device has come meanwhile, one that waits for it is looked at soon. Returns 1,
-- or 0 if the delivery was ended or the reminder cancelled before.
local function reminder_end(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local begun, _, _, _, first = string.match(redis.call('HGET', K[4], A[3]) or '', REMINDER)
  if begun ~= A[4] or first ~= A[5] then return 0 end
  redis.call('HDEL', K[4], A[3])
  local at, device = A[6], redis.call('HMGET', K[5], 'on', 'sid', 'rw')
  if at == '' then return reminders_cancel({K[2], K[3], K[4]}, {A[3], A[4]}) end
  if A[7] ~= '' then redis.call('HSET', K[2], A[4], A[7]) end
  local there = (A[8] == 'offline' and device[1] == '1') or (A[8] == 'session' and device[2])
  if there then
    at = string.format('%d', now() + 5000)
  elseif A[8] ~= '' and not string.find(device[3] or '', A[4], 1, true) then
    redis.call('HSET', K[5], 'rw', (device[3] or '') .. A[4] .. ' ')
  end
  redis.call('ZADD', K[3], 'XX', at, A[3] .. '|' .. A[4])
  return 1
end

-- K: record of each device  A: of each device: its tenant, 0 for that of the site ('' from an earlier version)
-- Notes whose devices are; of one that is not known nothing is noted.
local function tenants_put(K, A)
  for i, device in ipairs(K) do
    if redis.call('EXISTS', device) == 1 then redis.call('HSET', device, 'ten', A[i] == '' and '0' or A[i]) end
  end
  return #K
end

-- How often a device gets the same offer of firmware: one whose upgrade fails each time keeps working.
local MOST_OFFERS = 3
-- An offer, in the record of a device: its id, until when (ms), for which board, which version, all of it as JSON, how
-- often it was given, and whether its download has begun.
local OFFER = {'of', 'oft', 'ofb', 'ofv', 'ofj', 'ofn', 'ofk'}
-- What `boot` reads of an admission and of a device.
local ADMISSION = {'bound', 'client', 'gen', 'unbound', 'otherat', 'req', 'tz'}
local BOOTED = {'ep', 'src', 'boot', 'fw', 'dialect', 'of', 'oft', 'ofb', 'ofv', 'ofj', 'ofn', 'ofk'}

-- Returns fields of a hash by their names, with one command.
local function read(key, names)
  local found, values = {}, redis.call('HMGET', key, unpack(names))
  for i, name in ipairs(names) do found[name] = values[i] end
  return found
end

-- Returns id and JSON of the firmware that a device gets at this boot, '' for none. What it has begun to download it
-- gets no more: if it boots without it, the image does not run.
local function offered(device, o, told)
  local past = not o.of or o.ofk or tonumber(o.oft) < now() or tonumber(o.ofn) >= MOST_OFFERS
  if past or o.ofb ~= told.board or o.ofv == told.fw then return '', '' end
  redis.call('HINCRBY', device, 'ofn', 1)
  return o.of, o.ofj
end

-- Writes the events of a client that was served; `new`: nothing was known of its MAC.
local function emit_boot(A, new, told, offer)
  if new then emit(A[7] .. 'ev', 'device.registered', A[3], '{}') end
  local about = {'firmware', told.fw, 'board', told.board, 'address', A[4]}
  if offer ~= '' then about[7], about[8] = 'offer', offer end
  emit(A[7] .. 'ev', 'device.booted', A[3], texts(unpack(about)))
end

-- K: admission, device, devices by bootstrap, MACs that never connected, claims of the MAC, mark of a refused claim
-- A: policy, Client-Id, MAC, address, whether it can prove itself 0|1, time as text, prefix of the shard's keys, most
--    that never connected, most of them from one address, their life s, device ttl s, most claims, most claims of one
--    address, claim ttl s, dialect or '', device field, value, …
-- Decides about a client of bootstrap and pins it if it is the first. As this is one step, one of several clients that
-- ask at once is the first; the others are judged by its pin. A new MAC needs a free place; under every policy but
-- `open` no other MAC loses its place for it. Stores the device's fields if the client is served.
-- Returns {verdict, generation of its password, time zone or '', 1 if the client has a claim now, 1 if another MAC lost
-- its place, the firmware that it is offered as JSON or ''}.
local function boot(K, A)
  local o, device, at = read(K[1], ADMISSION), read(K[2], BOOTED), seconds()
  local connected, has_place, lack, full = device.ep, false, nil, nil
  local young = not connected and redis.call('TTL', K[1]) ~= -1
  if young then
    has_place = tonumber(redis.call('ZSCORE', K[4], A[3]) or '0') > at - A[10]
    if not has_place then
      tidy_young(K[4], K[3], tonumber(A[10]))
      lack, full = crowded(K[4], A[4], A[10], tonumber(A[8]), tonumber(A[9]))
    end
  end
  -- Under the policy `open` no password proves ownership. But if the broker refuses earlier generations of this MAC
  -- (`req`), the new password needs a generation to be accepted.
  local decided = {'admitted', tonumber(o.req or '0') > 1 and o.gen or '0', 0}
  if A[1] ~= 'open' then decided = judge(K, A, o, connected, lack) end
  if decided[1] ~= 'admitted' then
    emit_refusal(A, decided[1], decided[3], decided[4])
    return {decided[1], 0, o.tz or '', decided[3], 0, ''}
  end
  if lack and A[1] == 'open' and not crowd_out(full, K[4], K[3], A[7]) then
    return {'admitted', decided[2], o.tz or '', 0, 0, ''}
  end
  -- The client library may repeat this call after a fault: its time is the same then.
  local told = {fw = '', board = ''}
  for field = 16, #A, 2 do
    if told[A[field]] then told[A[field]] = A[field + 1] end
  end
  local offer, terms = offered(K[2], device, told)
  if device.boot ~= A[6] or (device.fw or '') ~= told.fw then
    emit_boot(A, not device.boot and redis.call('EXISTS', K[2]) == 0, told, offer)
  end
  local source = device.src or A[4]
  if young then
    redis.call('HSET', K[2], 'kg', decided[2], 'boot', A[6], 'src', source, unpack(A, 16))
  else
    redis.call('HSET', K[2], 'kg', decided[2], 'boot', A[6], unpack(A, 16))
  end
  if A[15] ~= '' and (lack or not device.dialect) then redis.call('HSETNX', K[2], 'dialect', A[15]) end
  redis.call('ZADD', K[3], at, A[3])
  if young then
    -- The hour of the MAC and of its pin begins again: the client that is served is its owner (under `open`: any
    -- client).
    for key = 1, 2 do redis.call('EXPIRE', K[key], A[10]) end
    take_place(K[4], A[3], source, A[10], at, has_place)
  else
    redis.call('EXPIRE', K[2], A[11])
    if device.src then give_back(K[4], K[2], A[3]) end
  end
  return {'admitted', decided[2], o.tz or '', 0, lack and 1 or 0, terms}
end

-- Deletes what belongs to the users of a device, with the keys of `own`.
local function forget_user(K, mac)
  reminders_cancel({K[8], K[9], K[10]}, {mac})
  redis.call('DEL', unpack(K, 11))
end

-- K: admission, device, MACs that never connected, devices with an old password, generations to require, claims, events,
--    reminders of the device, due reminders, those under way, what was said to the device and is known from it, …
-- A: bind|unbind|raise, MAC, time as text, until when earlier generations count (s since 1970, 0: now) [, Client-Id or
--    '', serial number or '', how]
-- Changes a device's owner or its generation; with the owner, its reminders and all of K from 11 on are deleted. If earlier generations were
-- already to end at a sooner time, that time stays.
-- Returns {1 when its generation rose (bind), it had an owner (unbind), or always (raise); its generation}.
local function own(K, A)
  local o = redis.call('HMGET', K[1], 'bound', 'client', 'gen', 'due', 'unbound')
  local answer, raised, generation = 1, true, o[3]
  if A[1] == 'bind' then
    -- `stray`: the device is connected with a password of a pin that has expired; another client may have that password
    -- too.
    local held, told = held_by(K[2])
    local stray = not o[1] and not o[5] and told and held > 0
    raised = stray or (o[1] and (o[2] or '') ~= '' and o[2] ~= A[5])
    if raised or not o[1] then generation = next_generation(o[3]) end
    redis.call('HDEL', K[1], 'client', 'serial', 'unbound')
    redis.call('HSET', K[1], 'bound', A[3], 'how', A[7])
    if A[5] ~= '' then redis.call('HSET', K[1], 'client', A[5]) end
    if A[6] ~= '' then redis.call('HSET', K[1], 'serial', A[6]) end
    redis.call('HDEL', K[6], A[5])
    answer = raised and 1 or 0
    if raised then forget_user(K, A[2]) end
  else
    generation = next_generation(o[3])
    if A[1] == 'unbind' then
      redis.call('HDEL', K[1], 'bound', 'client', 'serial', 'how')
      redis.call('HSET', K[1], 'unbound', A[3])
      forget_user(K, A[2])
      answer = o[1] and 1 or 0
    end
  end
  redis.call('PERSIST', K[1])
  if A[1] == 'bind' then
    if (o[2] or '') ~= A[5] or not o[1] then
      emit(K[7], 'device.bound', A[2], texts('how', A[7], 'client', A[5]))
    end
  elseif A[1] == 'unbind' and o[1] then
    emit(K[7], 'device.unbound', A[2], '{}')
  end
  give_back(K[3], K[2], A[2])
  if generation then redis.call('HSET', K[1], 'gen', generation) end
  if raised then
    local at = tonumber(A[4])
    local due = at == 0 and seconds() or math.min(at, tonumber(o[4] or A[4]))
    redis.call('HSET', K[1], 'due', string.format('%d', due))
    redis.call('ZADD', K[5], due, A[2])
    if at == 0 then redis.call('ZREM', K[4], A[2]) else redis.call('ZADD', K[4], seconds(), A[2]) end
  end
  return {answer, generation or '1'}
end

-- K: fence of jobs, each device  A: fence; of each device: id, until ms, board or '', version, JSON
-- Offers firmware to devices; an offer with the same id stays as it is. Returns for each 1, or 0: nothing is known of
-- the device.
local function offers_put(K, A)
  if tonumber(redis.call('GET', K[1]) or '0') > tonumber(A[1]) then return fenced() end
  local answers = {}
  for number = 2, #K do
    local at, known = 2 + (number - 2) * 5, redis.call('EXISTS', K[number])
    if known == 1 and redis.call('HGET', K[number], 'of') ~= A[at] then
      redis.call('HDEL', K[number], 'ofk')
      redis.call('HSET', K[number], 'of', A[at], 'oft', A[at + 1], 'ofb', A[at + 2], 'ofv', A[at + 3], 'ofj', A[at + 4],
        'ofn', 0)
    end
    answers[#answers + 1] = known
  end
  return answers
end

-- K: each device  A: 1 to withdraw only what no device was given yet, else 0; of each device: id
-- Withdraws offers. Returns for each 1 if it was withdrawn, 0 if it stays or was not there.
local function offers_withdraw(K, A)
  local answers = {}
  for number = 1, #K do
    local o, gone = redis.call('HMGET', K[number], 'of', 'ofn', 'ofk'), 0
    if o[1] == A[number + 1] and (A[1] == '0' or (o[2] == '0' and not o[3])) then
      redis.call('HDEL', K[number], unpack(OFFER))
      gone = 1
    end
    answers[#answers + 1] = gone
  end
  return answers
end

-- K: device, events  A: id, MAC
-- Notes that a device begins a download. Returns the offer as JSON, '' if it is withdrawn.
local function offer_take(K, A)
  local o = redis.call('HMGET', K[1], 'of', 'ofj', 'ofk')
  if o[1] ~= A[1] then return {''} end
  if not o[3] then
    redis.call('HSET', K[1], 'ofk', '1')
    emit(K[2], 'firmware.taken', A[2], texts('offer', A[1]))
  end
  return {o[2]}
end

-- Called when a device connected. If its password has the wanted generation, it needs no restart, and the broker may
-- refuse earlier generations. If the password is of an earlier generation and no end of that one is pending, it belongs
-- to an owner whose pin expired, and the broker refuses it from now on.
local function note_password(device, admission, old, due, mac, held, told, asked)
  local o = redis.call('HMGET', admission, 'gen', 'due', 'req')
  if held >= wanted(o[1]) then
    redis.call('ZREM', old, mac)
    if asked then redis.call('HDEL', device, 'rn') end
    if told and (o[2] or not o[3]) then redis.call('ZADD', due, 0, mac) end
  elseif told and held > 0 and not o[2] then
    redis.call('HSET', admission, 'due', seconds())
    redis.call('ZADD', due, 0, mac)
  elseif tonumber(redis.call('ZSCORE', old, mac) or 'inf') == math.huge then
    redis.call('ZADD', old, seconds() + 20, mac)
  end
end

-- {MAC, generation, …} of some devices whose earlier passwords are to be refused now. Generation 1 refuses only
-- passwords that prove no ownership.
local function due_now(due, prefix, most)
  local answer = {}
  for _, mac in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', seconds(), 'LIMIT', 0, most)) do
    local o = redis.call('HMGET', prefix .. 'o:' .. mac, 'gen', 'due')
    answer[#answer + 1] = mac
    answer[#answer + 1] = o[2] and tostring(o[1]) or '1'
  end
  return answer
end

-- Some idle devices with an old password that are to be asked to restart now. Each is asked again later, after pauses
-- that double. The set `old` has them by the time of the next request; `inf` is for devices that are offline.
local function ask_now(old, prefix, most, again, longest, busy)
  local answer = {}
  for _, mac in ipairs(redis.call('ZRANGEBYSCORE', old, '-inf', seconds(), 'LIMIT', 0, 50)) do
    local device = prefix .. 'd:' .. mac
    local d = redis.call('HMGET', device, 'ep', 'on', 'sid', 'rn')
    local held = held_by(device)
    if not d[1] or held >= wanted(redis.call('HGET', prefix .. 'o:' .. mac, 'gen')) then
      redis.call('ZREM', old, mac)
    elseif d[2] ~= '1' then
      redis.call('ZADD', old, 'inf', mac)
    elseif d[3] then
      redis.call('ZADD', old, seconds() + busy, mac)
    elseif #answer < most then
      redis.call('HINCRBY', device, 'rn', 1)
      redis.call('ZADD', old, seconds() + math.min(again * 2 ^ math.min(tonumber(d[4] or '0'), 20), longest), mac)
      answer[#answer + 1] = mac
    end
  end
  return answer
end

-- K: own, generations to require, devices with an old password, mark, MACs that never connected, devices by bootstrap
-- A: worker, fence, prefix of the shard's keys, most to require, whether old passwords are replaced 0|1, most to ask,
--    first pause s, longest pause s, pause for a device in a session s, life of MACs that never connected s
-- Returns the due work of a shard: {mark or '', MACs that never connected, number of devices to require a generation
-- of, MAC, generation, …, MAC to ask for a restart, …}.
local function renewal_look(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  tidy_young(K[5], K[6], tonumber(A[10]))
  local due, asked = due_now(K[2], A[3], A[4]), {}
  if A[5] == '1' then
    asked = ask_now(K[3], A[3], tonumber(A[6]), tonumber(A[7]), tonumber(A[8]), tonumber(A[9]))
  else
    -- Under the policy `open` every generation is accepted.
    redis.call('DEL', K[3])
  end
  local answer = {redis.call('GET', K[4]) or '', redis.call('ZCARD', K[5]), #due / 2}
  for _, part in ipairs(due) do answer[#answer + 1] = part end
  for _, mac in ipairs(asked) do answer[#answer + 1] = mac end
  return answer
end

-- K: own, generations to require, admission of each device  A: worker, fence, MAC and generation of each
-- Records that the generations are required.
local function renewal_settled(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  for i = 3, #K do
    local mac, generation = A[2 * i - 3], A[2 * i - 2]
    local o = redis.call('HMGET', K[i], 'gen', 'due')
    -- If the generation rose again meanwhile, that change has a due time of its own, which stays.
    if not o[2] or o[1] == generation then
      if o[2] then redis.call('HDEL', K[i], 'due') end
      if o[1] or redis.call('EXISTS', K[i]) == 1 then redis.call('HSET', K[i], 'req', generation) end
      redis.call('ZREM', K[2], mac)
    end
  end
  return 1
end

-- K: own, devices (by bootstrap, or those that are online), devices with an old password, generations to require, mark
-- A: worker, fence, prefix of the shard's keys, cursor, count, text of the mark before its cursor
-- Sorts some of a shard's devices, after a policy began that needs current passwords: those with an old password, and
-- those without. Returns the next cursor, 0 at the end.
local function renewal_scan(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local page = redis.call('ZSCAN', K[2], A[4], 'COUNT', A[5])
  for i = 1, #page[2], 2 do
    local mac = page[2][i]
    local device, admission = A[3] .. 'd:' .. mac, A[3] .. 'o:' .. mac
    if redis.call('HEXISTS', device, 'ep') == 1 then
      local o = redis.call('HMGET', admission, 'gen', 'req')
      if o[2] == '1' then redis.call('HDEL', admission, 'req') end
      if held_by(device) < wanted(o[1]) then
        redis.call('ZADD', K[3], 'NX', redis.call('HGET', device, 'on') == '1' and seconds() or 'inf', mac)
      elseif not o[2] or o[2] == '1' then
        redis.call('ZADD', K[4], 'NX', 0, mac)
      end
    end
  end
  redis.call('SET', K[5], A[6] .. ' ' .. page[1])
  return page[1]
end

-- How long after a device reconnected the goodbye of its ended session is repeated: GRACE_SECONDS in
-- fleet/roles/worker/sessions/returns.py.
local GOODBYE_AGAIN_MS = 1000

-- K: device, own, online devices by epoch, admission, MACs that never connected, devices with an old password,
--    generations to require, tools, events
-- A: online 0|1, epoch, ttl s, mac, worker or '', fence or '', user name of the connection or ''
-- Records the presence of a device, unless its epoch is lower than the known one. A worker's call is fenced: "online"
-- and "offline" of one connection have the same epoch, so an earlier owner could overwrite one by the other.
-- Returns {applied, session id or '', epoch of the tool list or '', id of the session that ended last or '', dialect or
-- '', 1 if an apology is owed}. The ended session is '' if the device itself ended it; for any other the worker repeats
-- the goodbye a second after the device reconnected. Without a stored dialect, a device with a tool list is a xiaozhi
-- one. To these are added: {host, user name that the broker reported, digests of the pages of its tools}, '' for each
-- that is unknown.
local function presence(K, A)
  if A[5] ~= '' and not owns(K[2], A[5], A[6]) then return fenced() end
  local known = redis.call('HMGET', K[1], 'ep', 'sid', 'tep', 'gone', 'dialect', 'sorry', 'knows', 'tp', 'src', 'rn',
    'cu', 'cep', 'kg', 'host', 'pg', 'on', 'rw')
  if tonumber(A[2]) < tonumber(known[1] or '0') then return {0, '', '', '', '', 0, '', '', ''} end
  local online, at = A[1] == '1', now()
  local fields = {'on', A[1], 'ep', A[2], 'tp', string.format('%d', math.floor(at / 1000))}
  -- `cu` counts only for the connection `cep`: another broker, or a worker of another version, may report the next
  -- connection without a user name.
  if online and A[7] ~= '' then
    known[11], known[12] = A[7], A[2]
    for _, part in ipairs({'cu', A[7], 'cep', A[2]}) do fields[#fields + 1] = part end
  end
  local gone = not known[7] and known[4] or ''
  if online and gone ~= '' and not known[2] then
    fields[#fields + 1], fields[#fields + 2] = 'ga', string.format('%d', at + GOODBYE_AGAIN_MS)
  end
  redis.call('HSET', K[1], unpack(fields))
  if known[16] ~= A[1] or online and known[1] ~= A[2] then
    local key = online and known[12] == A[2] and string.match(known[11] or '', '^device%.([%w_-]+)')
    emit(K[9], online and 'device.online' or 'device.offline', A[4], key and '{"key":"' .. key .. '"}' or '{}')
  end
  if at / 1000 - tonumber(known[8] or '0') > RENEWED_AFTER then redis.call('EXPIRE', K[1], A[3]) end
  if online then
    redis.call('ZADD', K[3], A[2], A[4])
    if known[9] or not known[1] then
      -- Its pin does not expire any more.
      redis.call('PERSIST', K[4])
      redis.call('EXPIRE', K[1], A[3])
      give_back(K[5], K[1], A[4])
    end
    local held, told = held_of(known[11], known[12], A[2], known[13])
    note_password(K[1], K[4], K[6], K[7], A[4], held, told, known[10])
    if known[17] then wake_reminders(string.sub(K[9], 1, -3), A[4], known[17], at + 3000) end
  else
    redis.call('ZREM', K[3], A[4])
  end
  local dialect = known[5] or (known[3] and known[3] ~= '' and 'xiaozhi') or ''
  local pages = online and (known[15] or '') ~= '' and redis.call('EXISTS', K[8]) == 1 and known[15] or ''
  local user = known[12] == A[2] and known[11] or ''
  return {1, known[2] or '', known[3] or '', gone, dialect, known[6] and 1 or 0, known[14] or '', user, pages}
end

-- K: own, online devices by epoch  A: worker, fence, epoch, limit, prefix of the shard's keys
-- Marks some devices offline whose connection is older than the broker's start; returns {mac, session id or '', …} of
-- them.
local function outdate(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local answer = {}
  for _, mac in ipairs(redis.call('ZRANGEBYSCORE', K[2], '-inf', '(' .. A[3], 'LIMIT', 0, A[4])) do
    local device = A[5] .. 'd:' .. mac
    redis.call('ZREM', K[2], mac)
    if redis.call('EXISTS', device) == 1 then redis.call('HSET', device, 'on', '0') end
    emit(A[5] .. 'ev', 'device.offline', mac, '{"reason":"the broker restarted"}')
    answer[#answer + 1] = mac
    answer[#answer + 1] = redis.call('HGET', device, 'sid') or ''
  end
  return answer
end

-- The index of a shard's sessions on one edge: a set of MACs.
local function index_of(prefix, edge) return prefix .. 'e:' .. edge end

-- Adds a member to a set and sets the set's life when the member is new.
local function index(set, member, life)
  if redis.call('SADD', set, member) == 1 then redis.call('EXPIRE', set, life) end
end

-- K: admission of a device, agents of its shard.  Returns the digest of its agent and its number of messages of
-- history, '' for each that is unknown: the agent that was given to the device, else the site's (`*`).
local function agent_of(admission, agents)
  local given = redis.call('HGET', admission, 'agent')
  local head = given and redis.call('HGET', agents, given)
  if not head then
    local usual = redis.call('HGET', agents, '*')
    head = usual and redis.call('HGET', agents, usual)
  end
  return string.match(head or '', '^(%S*) ?(%d*)$')
end

-- K: admission, agents.  Returns the digest of the device's agent, or ''.
local function agent(K)
  local digest = agent_of(K[1], K[2])
  return digest
end

-- K: own, session, device, tools, edges of the shard's sessions[, admission, agents of the shard]
-- A: worker, fence, session ttl s, device ttl s, index ttl s, prefix of the shard's keys, mac, edge, message for the
--    edge (4 arguments: see `post`), dialect, session id, session field, value, …
-- Replaces the device's session. The dialect in which the device registered its tools in this connection is kept. The
-- message for the edge gets what the device reported about itself, and its agent.
-- Returns {old session id, old edge, epoch, epoch of the tool list or '', firmware or '', language or '', board or '',
-- digest of its agent or ''}. If announcements are kept for the device (`kept`), the session notes the time in seconds:
-- its first turn waits for them.
local function hello(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local old = redis.call('HMGET', K[2], 'id', 'edge')
  local device = redis.call('HMGET', K[3], 'ep', 'tep', 'dialect', 'fw', 'lang', 'board', 'th', 'sorry', 'se', 'on', 'rw',
    'kept')
  if old[2] and old[2] ~= A[8] then redis.call('SREM', index_of(A[6], old[2]), A[7]) end
  index(K[5], A[8], A[5])
  index(index_of(A[6], A[8]), A[7], A[5])
  local tools = device[2] and device[2] == device[1] and redis.call('EXISTS', K[4]) == 1
  local answer = {old[1] or '', old[2] or '', device[1] or '', tools and device[2] or ''}
  for part = 4, 6 do answer[part + 1] = device[part] or '' end
  answer[8] = K[7] and agent({K[6], K[7]}) or ''
  local message = A[9] ~= '' and string.format('%s,"firmware":%s,"reported_language":%s,"board":%s,"agent":%s}',
    string.sub(A[9], 1, -2), cjson.encode(answer[5]), cjson.encode(answer[6]), cjson.encode(answer[7]),
    cjson.encode(answer[8]))
  local at = string.format('%d', math.floor(post(A[8], A, 9, message) / 1000))
  local kept = device[3] and device[2] and device[2] == device[1] and device[3] or A[13]
  redis.call('HSET', K[3], 'on', '1', 'th', at, 'sid', A[14], 'dialect', kept)
  if at - tonumber(device[7] or '0') > RENEWED_AFTER then
    redis.call('EXPIRE', K[3], A[4])
    redis.call('EXPIRE', K[4], A[4])
  end
  if device[8] or device[9] then redis.call('HDEL', K[3], 'sorry', 'se') end
  if device[11] then wake_reminders(A[6], A[7], device[11], now()) end
  if device[12] then
    redis.call('HDEL', K[3], 'kept')
    redis.call('HSET', K[2], 'kept', at)
  end
  redis.call('HSET', K[2], 'id', A[14], 'dialect', kept, 'edge', A[8], unpack(A, 15))
  redis.call('EXPIRE', K[2], A[3])
  if device[10] ~= '1' then emit(A[6] .. 'ev', 'device.online', A[7], '{}') end
  if old[1] ~= A[14] then
    -- One event: that a session replaces another follows from it.
    emit(A[6] .. 'ev', 'session.started', A[7],
      string.format('{"session":"%s","replaces":"%s","dialect":"%s"}', A[14], old[1] or '', kept))
  end
  return answer
end

-- K: own, session  A: worker, fence, session id, message for its edge (4 arguments: see `post`)
-- Sends the message if this is the current session; returns the session's edge, or '' if it is not.
local function forward(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local session = redis.call('HMGET', K[2], 'id', 'edge')
  if A[3] ~= session[1] then return '' end
  post(session[2], A, 4)
  return session[2]
end

-- An apology is shown this long after the goodbye at the earliest, and this long after the session's end at the latest.
-- The transition of the firmware to idle clears the screen, and a modem reconnects after a minute (device contract 2.3,
-- 3.2).
local APOLOGY_AFTER_MS, APOLOGY_UNTIL_MS = 450, 120000

-- A conversation that has ended waits this long: its last turn may still be corrected.
local CONVERSATION_OVER_MS = 3000

-- K: own, session, device, conversations to remember, conversation, devices of the shard with an apology
-- A: worker, fence, session id, prefix of the shard's keys, mac, reason, 1 if the device was sent a goodbye, apology or
--    '', message for its edge (4 arguments: see `post`)
-- Ends the session if it is the current one. Returns its edge or ''. The field `knows` is set if the device itself
-- ended its last session.
local function goodbye(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local session = redis.call('HMGET', K[2], 'id', 'edge')
  if session[1] ~= A[3] then return '' end
  local at = session[2] and post(session[2], A, 9) or string.format('%d', now())
  local fields = {'gone', A[3], 'tb', string.format('%d %s', math.floor(at / 1000), A[6])}
  local function set(field, text) fields[#fields + 1], fields[#fields + 2] = field, text end
  if A[6] == 'device' then set('knows', '1') end
  if A[7] == '1' then set('ga', at) end
  if A[8] ~= '' then
    set('sorry', at .. ' ' .. A[8])
    index(K[6], A[5], 2 * APOLOGY_UNTIL_MS / 1000)
  end
  if session[2] then redis.call('SREM', index_of(A[4], session[2]), A[5]) end
  redis.call('DEL', K[2])
  redis.call('HDEL', K[3], 'sid', 'ga', 'sorry', 'se', 'knows')
  redis.call('HSET', K[3], unpack(fields))
  local talk = redis.call('HMGET', K[5], 'count', 'tok')
  if talk[1] and not talk[2] then redis.call('ZADD', K[4], 'XX', at + CONVERSATION_OVER_MS, A[5]) end
  emit(A[4] .. 'ev', 'session.ended', A[5], texts('session', A[3], 'reason', A[6]))
  return session[2] or ''
end

-- K: device  A: session id.  Returns how many ms ago the goodbye of this session was sent, or -1 if none was.
local function ended(K, A)
  local known = redis.call('HMGET', K[1], 'gone', 'ga')
  if known[1] ~= A[1] or not known[2] then return -1 end
  return math.max(0, now() - tonumber(known[2]))
end

-- Returns 'due', 'waits' or 'none', and the apology. It is shown once in each connection, to a device without a
-- session: a device clears its screen when it reconnects, and may have missed what was sent before.
local function apology_of(device)
  local known = redis.call('HMGET', device, 'sorry', 'ga', 'on', 'ep', 'se', 'sid')
  local since, apology = string.match(known[1] or '', '^(%d+) (.+)$')
  if not since or known[6] or now() - tonumber(since) > APOLOGY_UNTIL_MS then return 'none' end
  if known[3] ~= '1' or known[5] == (known[4] or '') then return 'waits' end
  return now() - tonumber(known[2] or '0') < APOLOGY_AFTER_MS and 'waits' or 'due', apology
end

-- K: device  A: none.  Returns {apology, language or '', connection's epoch or ''} if an apology is due now, or {}.
local function apology(K, A)
  local state, name = apology_of(K[1])
  if state ~= 'due' then return {} end
  local known = redis.call('HMGET', K[1], 'lang', 'ep')
  return {name, known[1] or '', known[2] or ''}
end

-- K: own, edges of the shard's sessions, devices of the shard with an apology
-- A: worker, fence, prefix of the shard's keys, limit, live edge, …
-- Returns {mac, session id, …} of some sessions of dead edges, and removes outdated entries of both indices. An empty
-- session id stands for a device to which an apology is due.
local function orphans(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local live, answer = {}, {}
  for at = 5, #A do live[A[at]] = true end
  for _, edge in ipairs(redis.call('SMEMBERS', K[2])) do
    if not live[edge] then
      local index = index_of(A[3], edge)
      local macs = redis.call('SRANDMEMBER', index, A[4])
      if #macs == 0 then redis.call('SREM', K[2], edge) end
      for _, mac in ipairs(macs) do
        local session = redis.call('HMGET', A[3] .. 's:' .. mac, 'id', 'edge')
        if session[2] == edge then
          answer[#answer + 1] = mac
          answer[#answer + 1] = session[1]
        else
          redis.call('SREM', index, mac)
        end
      end
    end
  end
  for _, mac in ipairs(redis.call('SRANDMEMBER', K[3], A[4])) do
    local state = apology_of(A[3] .. 'd:' .. mac)
    if state == 'due' then
      answer[#answer + 1] = mac
      answer[#answer + 1] = ''
    elseif state == 'none' then
      redis.call('SREM', K[3], mac)
    end
  end
  return answer
end

-- K: own, device, tools, session  A: worker, fence, ttl s, dialect, tools
-- Replaces the tools of a device that registered them itself, and stores its dialect.
local function register(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  redis.call('SET', K[3], A[5], 'EX', A[3])
  redis.call('HSET', K[2], 'dialect', A[4], 'tep', redis.call('HGET', K[2], 'ep') or '', 'pg', '')
  redis.call('HSETNX', K[2], 'on', '1')
  redis.call('EXPIRE', K[2], A[3])
  if redis.call('EXISTS', K[4]) == 1 then redis.call('HSET', K[4], 'dialect', A[4]) end
  return 1
end

-- K: own, device, tools  A: worker, fence, ttl s, list or '' for the stored one, field, value, …
-- Writes a device's tool list and the fields about it, or prolongs the stored list. Returns 0, and writes nothing, if
-- no list is stored.
local function tool_list(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  if A[4] ~= '' then
    redis.call('SET', K[3], A[4], 'EX', A[3])
  elseif redis.call('EXPIRE', K[3], A[3]) == 0 then
    return 0
  end
  if A[5] then redis.call('HSET', K[2], unpack(A, 5)) end
  return 1
end

-- K: own, target  A: worker, fence, ttl s, field, value, …  Writes fields of a hash as the shard's owner.
local function fenced_set(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  for at = 4, #A, 2 do redis.call('HSET', K[2], A[at], A[at + 1]) end
  redis.call('EXPIRE', K[2], A[3])
  return 1
end

-- Whether one entry of a stream was written before another.
local function older(one, other)
  local ms, number = string.match(one, '^(%d+)-(%d+)$')
  local other_ms, other_number = string.match(other or '', '^(%d+)-(%d+)$')
  if not ms or not other_ms then return false end
  if ms ~= other_ms then return tonumber(ms) < tonumber(other_ms) end
  return tonumber(number) < tonumber(other_number)
end

-- A history loses its oldest messages in blocks: a prompt that lost some with each turn would never begin as the one
-- before it, and endpoints reuse their work only on equal beginnings (fleet/core/situation.py). Returns how many messages
-- are too many if the newest `fewest` stay.
local BLOCK = 10
local function surplus(length, fewest) return math.max(0, math.floor((length - fewest) / BLOCK)) * BLOCK end

-- K: tools, history, reports[, persona[, admission[, memory[, agents of the shard]]]]
-- A: fewest messages, oldest report ms[, life of a memory s]
-- The data that a turn needs; of the history, the newest messages and less than a block before them. The agent may want
-- another number of messages than A. Returns {tools or '', number of messages[, language or '', character or ''[, time
-- zone or ''[, number of facts[, digest of the agent or '']]]], message, …, fact, …, 'age-in-ms report', …}. A worker of
-- an older version gives fewer keys and gets fewer parts.
local function turn_context(K, A)
  local fewest, history = tonumber(A[1]), {}
  local digest, wanted = '', ''
  if K[7] then digest, wanted = agent_of(K[5], K[7]) end
  if wanted ~= '' then fewest = tonumber(wanted) end
  if fewest > 0 then history = redis.call('LRANGE', K[2], surplus(redis.call('LLEN', K[2]), fewest), -1) end
  local answer = {redis.call('GET', K[1]) or '', #history}
  if K[4] then
    local persona = redis.call('HMGET', K[4], 'language', 'character')
    answer[3], answer[4] = persona[1] or '', persona[2] or ''
  end
  if K[5] then answer[5] = redis.call('HGET', K[5], 'tz') or '' end
  local facts = K[6] and redis.call('LRANGE', K[6], 0, -1) or {}
  if K[6] then answer[6] = #facts end
  if K[7] then answer[7] = digest end
  for _, line in ipairs(history) do answer[#answer + 1] = line end
  for _, fact in ipairs(facts) do answer[#answer + 1] = fact end
  if #facts > 0 then redis.call('EXPIRE', K[6], A[3]) end
  local oldest = tonumber(A[2])
  for _, line in ipairs(redis.call('LRANGE', K[3], 0, -1)) do
    local at, text = string.match(line, '^(%d+) (.*)$')
    local age = at and now() - tonumber(at)
    if age and age <= oldest then answer[#answer + 1] = string.format('%d %s', math.max(age, 0), text) end
  end
  return answer
end

-- {verdict, whether it is too late to answer, whether somebody watches, length of the session's and of the turn's part,
-- field, value, … of session and turn, the context}
local function begun(verdict, late, watched, session, turn, context)
  local answer = {verdict, late and 1 or 0, watched, #session, #turn}
  for _, parts in ipairs({session, turn, context}) do
    for _, part in ipairs(parts) do answer[#answer + 1] = part end
  end
  return answer
end

-- K: own, session, turn, device, live transcript, the keys of `turn_context`
-- A: worker, fence, session id or '' for any or none, session ttl s, turn ttl s, turn id, messages, token, id of the
--    stream entry, longest age of the entry ms, longest pause of a turn ms, most attempts, the arguments of
--    `turn_context`
-- Begins a turn in a live session, or returns the journal of a turn that was begun before. The id of the stream entry
-- that asks for the turn is the turn's epoch: the newest turn wins. Returns {'GONE'} if the session is over, {'OVER'}
-- if a newer turn has begun, {'BUSY'} if the turn before it still runs and must be ended first; else what `begun`
-- returns, with 'AGAIN' or 'GO', and the data that the turn needs. It is 'GO' also if the client library repeated this call after a fault: the token is
-- the same then. A call that waits for the user's yes (`ask`) waits for the next turn only, which finds it as `asked`.
local function turn_begin(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  if A[3] ~= '' and redis.call('HGET', K[2], 'id') ~= A[3] then return {'GONE'} end
  local known = redis.call('HMGET', K[3], 'turn', 'tok', 'state', 'at', 'past', 'seen', 'ask', 'asked')
  local at, verdict = now(), 'GO'
  local late = at - tonumber(string.match(A[9], '^%d+') or at) > tonumber(A[10])
  if known[1] == A[6] and known[2] ~= A[8] then
    verdict = 'AGAIN'
    late = redis.call('HINCRBY', K[3], 'tries', 1) > tonumber(A[12]) or at - tonumber(known[6] or at) > tonumber(A[11])
  elseif known[1] ~= A[6] then
    if older(A[9], known[4]) or string.find(known[5] or '', A[6], 1, true) then return {'OVER'} end
    if known[3] == 'running' then return {'BUSY'} end
    redis.call('DEL', K[3])
    redis.call('HSET', K[3], 'turn', A[6], 'tok', A[8], 'state', 'running', 'messages', A[7], 'sentences', 0, 'lines', 0,
      'at', A[9], 'seen', at, 'past', string.sub((known[1] or '') .. ' ' .. (known[5] or ''), 1, 132))
    known[8] = known[7]
    if known[8] then redis.call('HSET', K[3], 'asked', known[8]) end
  end
  redis.call('EXPIRE', K[3], A[5])
  redis.call('EXPIRE', K[2], A[4])
  local session = redis.call('HGETALL', K[2])
  -- Without a session, only the dialect of the device is known.
  if #session == 0 then session = {'dialect', redis.call('HGET', K[4], 'dialect') or ''} end
  local asked, watched = known[8] and {'asked', known[8]} or {}, redis.call('EXISTS', K[5])
  local turn = verdict == 'AGAIN' and redis.call('HGETALL', K[3]) or asked
  return begun(verdict, late, watched, session, turn, turn_context({unpack(K, 6)}, {unpack(A, 13)}))
end

-- K: own, turn  A: worker, fence, turn ttl s, turn id, messages for its edge (see `post_all`), field, value, …
-- Records the progress of the device's newest turn, then sends the edge what was recorded.
local function turn_record(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local turn = redis.call('HMGET', K[2], 'turn', 'state')
  if turn[1] ~= A[4] then return redis.error_reply('FENCED a newer turn has begun') end
  if turn[2] ~= 'running' then return redis.error_reply('FENCED the turn is over') end
  redis.call('HSET', K[2], 'seen', now(), unpack(A, post_all(A, 5)))
  redis.call('EXPIRE', K[2], A[3])
  return 1
end

-- K: session of the gateway, its history  A: time of use, ttl s, most messages
-- Prolongs a session. Returns {created, used before or '', language or '', character or '', message, …}, or {} if there
-- is none.
local function gateway_session(K, A)
  local answer = redis.call('HMGET', K[1], 'created', 'used', 'language', 'character')
  if not answer[1] or answer[1] == '' then return {} end
  for i = 2, 4 do answer[i] = answer[i] or '' end
  for _, line in ipairs(redis.call('LRANGE', K[2], -tonumber(A[3]), -1)) do answer[#answer + 1] = line end
  redis.call('HSET', K[1], 'used', A[1])
  for i = 1, 2 do redis.call('EXPIRE', K[i], A[2]) end
  return answer
end

-- Notes that a turn belongs to a conversation that is to be remembered when it ends: with its session, or some minutes
-- before the history expires. A new turn withdraws a claim that is being answered; its messages are then taken together
-- with those of the new turn. A correction of the last turn only changes the number of messages.
local function note_conversation(waiting, talk, mac, life, lines, earlier)
  if earlier > 0 then
    if redis.call('EXISTS', talk) == 1 then redis.call('HINCRBY', talk, 'count', lines - earlier) end
  elseif lines > 0 then
    redis.call('HINCRBY', talk, 'count', lines)
    redis.call('HDEL', talk, 'tok', 'tries')
    redis.call('EXPIRE', talk, life)
    redis.call('ZADD', waiting, now() + math.max(life - 180, life / 2) * 1000, mac)
  end
end

-- K: own, history, turn, events, inbox of the shard[, conversations to remember, conversation]
-- A: worker, fence, history ttl s, fewest messages that are kept, turn id, turn ttl s, state, messages, sentences,
--    apology, tokens, mac, data of the event, terms of the history, id of its inbox entry or '', messages for its edge
--    (see `post_all`), line, …
-- Writes a turn's lines into the history, in place of those that it wrote before, and the event of its end; then sends
-- the edge its messages, and discards the entry: nothing is left to do. Returns 0 and does nothing if it is not the newest turn, or if the state was 'cut' already and
-- A has another one.
local function remember(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local turn = redis.call('HMGET', K[3], 'turn', 'lines', 'state')
  if turn[1] ~= A[5] or (turn[3] == 'cut' and A[7] ~= 'cut') then return 0 end
  local earlier, first = tonumber(turn[2] or '0'), post_all(A, 16)
  if A[15] ~= '' then redis.call('XDEL', K[5], A[15]) end
  local lines = #A - first + 1
  if earlier > 0 then redis.call('LTRIM', K[2], 0, -earlier - 1) end
  local length = lines > 0 and redis.call('RPUSH', K[2], unpack(A, first)) or redis.call('LLEN', K[2])
  local more = surplus(length, tonumber(A[4]))
  if more > 0 then redis.call('LTRIM', K[2], more, -1) end
  redis.call('EXPIRE', K[2], A[3])
  redis.call('HSET', K[3], 'state', A[7], 'messages', A[8], 'partial', '', 'sentences', A[9], 'apology', A[10],
    'tokens', A[11], 'terms', A[14], 'lines', lines, 'seen', now())
  redis.call('EXPIRE', K[3], A[6])
  if turn[3] ~= A[7] then
    local cut = turn[3] == 'written' and 'turn.shortened' or 'turn.interrupted'
    local kind = A[7] == 'cut' and cut or A[10] == '' and 'turn.answered' or 'turn.failed'
    emit(K[4], kind, A[12], A[13])
  end
  if K[6] then note_conversation(K[6], K[7], A[12], tonumber(A[3]), lines, earlier) end
  return 1
end

-- K: own, inbox, events  A: worker, fence, id of an inbox entry, mac, data of the event
-- Takes an edge's report that an answer was spoken, and writes its event. The entry gives way to the event, so a
-- repeated report writes none. Returns 1, or 0 if the entry was gone.
local function spoken(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  if redis.call('XDEL', K[2], A[3]) == 0 then return 0 end
  emit(K[3], 'turn.spoken', A[4], A[5])
  return 1
end

-- K: own, conversations to remember
-- A: worker, fence, prefix of the shard's keys, limit, ms until the next attempt, most attempts
-- Claims some conversations that have ended. Returns {mac, token, number of its newest messages, …}; the answer to each
-- has to come with the token (`memory_change`). One that was claimed too often is given up.
local function memory_due(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local answer, at = {}, now()
  for _, mac in ipairs(redis.call('ZRANGEBYSCORE', K[2], '-inf', at, 'LIMIT', 0, A[4])) do
    local talk = A[3] .. 'mc:' .. mac
    local count = redis.call('HGET', talk, 'count')
    if not count or redis.call('HINCRBY', talk, 'tries', 1) > tonumber(A[6]) then
      redis.call('ZREM', K[2], mac)
      redis.call('DEL', talk)
    else
      local token = string.format('%s %d', A[2], at)
      redis.call('HSET', talk, 'tok', token)
      redis.call('ZADD', K[2], at + A[5], mac)
      for _, part in ipairs({mac, token, count}) do answer[#answer + 1] = part end
    end
  end
  return answer
end

-- K: own, memory, conversations to remember, conversation
-- A: worker, fence, ttl s, mac, token of a claim or '', most facts, most bytes of all, number of facts to remove, each of
--    them, fact to add, …
-- Changes what is known from a device. Facts that are there already, and those for which there is no room, are not
-- added. A change with a token ends its conversation; it is dropped if the claim is not the newest.
-- Returns {1 or 0 if it was dropped, number removed, number added}.
local function memory_change(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  if A[5] ~= '' and redis.call('HGET', K[4], 'tok') ~= A[5] then return {0, 0, 0} end
  local removed, added, first = 0, 0, 9 + tonumber(A[8])
  for at = 9, first - 1 do removed = removed + redis.call('LREM', K[2], 0, A[at]) end
  local size, known = 0, {}
  for _, fact in ipairs(redis.call('LRANGE', K[2], 0, -1)) do size, known[fact] = size + #fact, true end
  for at = first, #A do
    if not known[A[at]] and redis.call('LLEN', K[2]) < tonumber(A[6]) and size + #A[at] <= tonumber(A[7]) then
      redis.call('RPUSH', K[2], A[at])
      size, known[A[at]], added = size + #A[at], true, added + 1
    end
  end
  redis.call('EXPIRE', K[2], A[3])
  if A[5] ~= '' then
    redis.call('ZREM', K[3], A[4])
    redis.call('DEL', K[4])
  end
  return {1, removed, added}
end

-- K: own, reports  A: worker, fence, ttl s, most, report.  Stores a notification of a device, with the time.
local function report(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  redis.call('RPUSH', K[2], string.format('%d %s', now(), A[5]))
  redis.call('LTRIM', K[2], -tonumber(A[4]), -1)
  redis.call('EXPIRE', K[2], A[3])
  return 1
end

local function recount_queue(queue)
  local counts = {changes = {len = 0}}
  for _, entry in ipairs(redis.call('XRANGE', queue, '-', '+')) do
    local known = {}
    for i = 1, #entry[2], 2 do known[entry[2][i]] = entry[2][i + 1] end
    count_call(counts, known['n'] or '0', known['j'], 1)
  end
  return counts.changes
end

-- The list of records has each as `mac|id|tenant`; an earlier version writes `mac|id`.
local function record_member(mac, id, tenant) return mac .. '|' .. id .. '|' .. tenant end

local function tenant_of(member) return string.match(member, '^[^|]*|[^|]*|(.+)$') or '0' end

-- Counts the records, and removes those from their list that are gone: an earlier version forgets no `mac|id|tenant`.
local function recount_records(records)
  local counts, prefix = {changes = {len = 0}}, string.match(records, '^(.*)ocs$')
  for _, member in ipairs(redis.call('ZRANGE', records, 0, -1)) do
    if redis.call('EXISTS', prefix .. 'oc:' .. string.gsub(string.match(member, '^[^|]*|[^|]*'), '|', ':')) == 1 then
      count_call(counts, tenant_of(member), nil, 1)
    else
      redis.call('ZREM', records, member)
    end
  end
  return counts.changes
end

-- Removes records from their list whose life is over.
local function end_records(records, at)
  local over = redis.call('ZRANGEBYSCORE', records, '-inf', at)
  if #over == 0 then return end
  local counts = open_counts(records, redis.call('ZCARD', records), true)
  for _, member in ipairs(over) do count_call(counts, tenant_of(member), nil, -1) end
  redis.call('ZREMRANGEBYSCORE', records, '-inf', at)
  close_counts(counts)
end

-- Opens the queue and the list of records for some more calls; `jobs` is the most calls of jobs, if these are such.
local function open_lists(queue, records, at, more, longest, most, jobs)
  end_records(records, at)
  local taken, kept = redis.call('XLEN', queue), redis.call('ZCARD', records)
  local ample = 2 * (taken + more) <= math.min(longest, jobs or longest)
  local lists = {longest = tonumber(longest), most = tonumber(most), jobs = jobs and tonumber(jobs)}
  lists.ample = ample and 2 * (kept + more) <= lists.most
  lists.calls = open_counts(queue, taken, lists.ample, recount_queue)
  lists.records = open_counts(records, kept, lists.ample, recount_records)
  return lists
end

-- Whether a tenant may have one more call in lists that are open.
local function has_room(lists, tenant)
  if lists.ample then return true end
  local calls, records = lists.calls, lists.records
  if count_of(calls, 'a' .. tenant) >= lists.longest - count_of(calls, 'len') then return false end
  if lists.jobs and count_of(calls, 'j' .. tenant) >= lists.jobs - count_of(calls, 'jobs') then return false end
  return count_of(records, 'a' .. tenant) < lists.most - count_of(records, 'len')
end

-- Notes calls in lists that are open.
local function note_call(lists, tenant)
  count_call(lists.calls, tenant, lists.jobs, 1)
  count_call(lists.records, tenant, nil, 1)
end

local function close_lists(lists)
  close_counts(lists.calls)
  close_counts(lists.records)
end

-- Takes an entry from the queue; `tenant` is nil if nobody knows whose call it is.
local function leave_queue(queue, entry, tenant, job)
  if redis.call('XDEL', queue, entry) == 0 or redis.call('EXISTS', queue .. 'n') == 0 then return end
  local counts = {key = queue .. 'n', changes = {}, known = true}
  if not tenant then return redis.call('DEL', counts.key) end
  count_call(counts, tenant, job, -1)
  close_counts(counts)
end

-- Queues an operator's call and makes its record. Who calls it adds it to the list of records.
local function queue_call(queue, record, at, message, tool, life, within, tenant, job)
  if job then
    redis.call('XADD', queue, '*', 'm', message, 'n', tenant, 'j', '1')
    redis.call('HSET', record, 'st', 'queued', 'tool', tool, 'at', at, 'until', at + within, 'life', life,
      'ten', tenant, 'job', '1')
  else
    redis.call('XADD', queue, '*', 'm', message, 'n', tenant)
    redis.call('HSET', record, 'st', 'queued', 'tool', tool, 'at', at, 'until', at + within, 'life', life,
      'ten', tenant)
  end
  redis.call('PEXPIRE', record, life)
end

-- K: queue, record, records by their end
-- A: mac, id, message, tool, life of the record ms, ms in which the call may begin, longest queue, most records, tenant
-- Queues an operator's call, once for its id, which no other queue can push out. Returns KNOWN if it was queued before,
-- FULL if the tenant has its share of the queue or of the records, else QUEUED.
local function operator_call_put(K, A)
  if redis.call('EXISTS', K[2]) == 1 then return {'KNOWN'} end
  local at = now()
  local lists = open_lists(K[1], K[3], at, 1, A[7], A[8])
  if not has_room(lists, A[9]) then return {'FULL'} end
  queue_call(K[1], K[2], at, A[3], A[4], A[5], A[6], A[9])
  redis.call('ZADD', K[3], at + A[5], record_member(A[1], A[2], A[9]))
  note_call(lists, A[9])
  close_lists(lists)
  return {'QUEUED'}
end

-- K: own, record, outcomes of jobs, queue  A: worker, fence, outcome, text, mac, id, entry of the queue or ''
-- Ends an operator's call, once, and takes it from its queue; its record stays for its life from now on. Returns 0 if it
-- had ended, or is forgotten.
-- The outcome of a job's call is also added to those that control collects; that of a desired state to a stream of its
-- own, whose name ends with `s`.
local function operator_call_end(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local known = redis.call('HMGET', K[2], 'st', 'life', 'job', 'ten')
  if A[7] ~= '' then leave_queue(K[4], A[7], known[1] and (known[4] or '0'), known[4] and known[3]) end
  if not known[1] or known[1] == 'ended' then return 0 end
  redis.call('HSET', K[2], 'st', 'ended', 'out', A[3], 'text', A[4], 'ended', now())
  redis.call('PEXPIRE', K[2], known[2])
  if known[3] then
    local stream = string.find(A[6], 'state-', 1, true) == 1 and K[3] .. 's' or K[3]
    redis.call('XADD', stream, '*', 'm', A[5], 'c', A[6], 'o', A[3], 't', A[4])
  end
  return 1
end

-- K: fence of jobs  A: fence
-- Makes a lease of control known to a shard: earlier ones hand over no more calls.
local function jobs_begin(K, A)
  if tonumber(redis.call('GET', K[1]) or '0') > tonumber(A[1]) then return fenced() end
  redis.call('SET', K[1], A[1])
  return 1
end

-- K: queue, records by their end, fence of jobs
-- A: prefix of the shard's keys, fence, life of a record ms, ms in which a call may begin, most calls of jobs, longest
-- queue, most records; of each call: mac, id, message, tool, tenant
-- Queues calls of jobs, each as operator_call_put does. Returns what that returns of each.
local function job_calls_put(K, A)
  if tonumber(redis.call('GET', K[3]) or '0') > tonumber(A[2]) then return fenced() end
  local at = now()
  local lists, answers, ends = open_lists(K[1], K[2], at, (#A - 7) / 5, A[6], A[7], A[5]), {}, {}
  for i = 8, #A, 5 do
    local record, tenant, answer = A[1] .. 'oc:' .. A[i] .. ':' .. A[i + 1], A[i + 4], 'QUEUED'
    if redis.call('EXISTS', record) == 1 then
      answer = 'KNOWN'
    elseif not has_room(lists, tenant) then
      answer = 'FULL'
    else
      queue_call(K[1], record, at, A[i + 2], A[i + 3], A[3], A[4], tenant, true)
      note_call(lists, tenant)
      ends[#ends + 1] = at + A[3]
      ends[#ends + 1] = record_member(A[i], A[i + 1], tenant)
    end
    answers[#answers + 1] = answer
  end
  if #ends > 0 then redis.call('ZADD', K[2], unpack(ends)) end
  close_lists(lists)
  return answers
end

-- K: queue  A: most calls of jobs
-- Returns how many calls of jobs a queue has. Those of people count too while all together are at most half of `most`.
local function job_calls_queued(K, A)
  local taken = redis.call('XLEN', K[1])
  if 2 * taken <= tonumber(A[1]) then return {taken} end
  return {count_of(open_counts(K[1], taken, false, recount_queue), 'jobs')}
end

-- K: queue  A: prefix of the shard's keys; MACs
-- Returns what decides whether and how devices get their calls now, of each: '1' if it is connected, its dialect, the id
-- of its session, its time zone.
local function devices_look(K, A)
  local found = {}
  for i = 2, #A do
    local device = redis.call('HMGET', A[1] .. 'd:' .. A[i], 'on', 'dialect')
    found[#found + 1] = device[1] or ''
    found[#found + 1] = device[2] or ''
    found[#found + 1] = redis.call('HGET', A[1] .. 's:' .. A[i], 'id') or ''
    found[#found + 1] = redis.call('HGET', A[1] .. 'o:' .. A[i], 'tz') or ''
  end
  return found
end

-- K: the queue, which names the shard  A: prefix of the shard's keys, '1' to look at time zones; MACs
-- Counts devices by what decides how they can be reached now. Returns {JSON, count, …}: of each kind of device '1' if it
-- is connected, dialect, firmware, clips that it did not fetch, host, session, '1' if that has an edge, time zone.
local function devices_tally(K, A)
  local counts, kinds = {}, {}
  for i = 3, #A do
    local device = redis.call('HMGET', A[1] .. 'd:' .. A[i], 'on', 'dialect', 'fw', 'nofetch', 'host')
    local session = redis.call('HMGET', A[1] .. 's:' .. A[i], 'id', 'edge')
    local zone = A[2] == '1' and redis.call('HGET', A[1] .. 'o:' .. A[i], 'tz')
    local texts = {session[1] and '"1"' or '""', (session[2] or '') ~= '' and '"1"' or '""', cjson.encode(zone or '')}
    for part = 5, 1, -1 do table.insert(texts, 1, cjson.encode(device[part] or '')) end
    local kind = '[' .. table.concat(texts, ',') .. ']'
    if not counts[kind] then kinds[#kinds + 1] = kind end
    counts[kind] = (counts[kind] or 0) + 1
  end
  local found = {}
  for _, kind in ipairs(kinds) do
    found[#found + 1] = kind
    found[#found + 1] = tostring(counts[kind])
  end
  return found
end

-- K: outcomes, records by their end  A: prefix of the shard's keys; of each call: entry, mac, id
-- Removes what control has stored: outcomes, and the records of their calls.
local function job_calls_forget(K, A)
  local entries, records, members, earlier = {}, {}, {}, {}
  for i = 2, #A, 3 do
    local record = A[1] .. 'oc:' .. A[i + 1] .. ':' .. A[i + 2]
    local tenant = redis.call('HGET', record, 'ten') or '0'
    entries[#entries + 1] = A[i]
    records[#records + 1] = record
    members[tenant] = members[tenant] or {}
    table.insert(members[tenant], record_member(A[i + 1], A[i + 2], tenant))
    earlier[#earlier + 1] = A[i + 1] .. '|' .. A[i + 2]
  end
  redis.call('XDEL', K[1], unpack(entries))
  redis.call('DEL', unpack(records))
  local counts = open_counts(K[2], redis.call('ZCARD', K[2]), true)
  for tenant, some in pairs(members) do
    count_call(counts, tenant, nil, -redis.call('ZREM', K[2], unpack(some)))
  end
  count_call(counts, '0', nil, -redis.call('ZREM', K[2], unpack(earlier)))
  close_counts(counts)
  return #entries
end

-- K: record of each call
-- Notes that calls that have not ended are not wanted any more: an announcement that was not told is told no more.
local function calls_recall(K)
  for _, record in ipairs(K) do
    if (redis.call('HGET', record, 'st') or 'ended') ~= 'ended' then redis.call('HSET', record, 'back', '1') end
  end
  return #K
end

-- Why an operator's call must not be published, or nil: its record says that it was published (the call's own record is
-- younger or gone), has ended, is forgotten, or waited for too long.
local function operator_refuses(record, idempotency)
  local known = redis.call('HMGET', record, 'st', 'until')
  if not known[1] or known[1] == 'ended' then return {'OVER', '0', ''} end
  if redis.call('EXISTS', idempotency) == 1 then return nil end
  if known[1] == 'sent' then return {'U', '0', ''} end
  if now() > tonumber(known[2]) then return {'LATE', '0', ''} end
end

-- Begins one call. `to` is what all calls of the function have in common: MAC and fields of the device, the deadlines of
-- its shard, the time, and who asks.
local function begin_one(to, call_key, idempotency, id, token, timeout, tool)
  local earlier = redis.call('GET', idempotency)
  if earlier then
    local key = string.gsub(call_key, '[^:]+$', earlier)
    local call = redis.call('HMGET', key, 'st', 'tok', 'res')
    if call[1] == false then return 'U', earlier end
    if call[2] == token and call[1] == 'S' then return 'MINE', earlier end
    local deadline = redis.call('ZSCORE', to.deadlines, to.mac .. '|' .. earlier)
    return call[1], earlier, call[3], deadline and math.max(deadline - to.now, 0)
  end
  if redis.call('EXISTS', call_key) == 1 then return 'COLL' end
  if to.online == '0' then return 'OFF' end
  if to.session and redis.call('HEXISTS', to.session, 'id') == 1 then return 'SESS' end
  if to.pending + to.begun >= to.most then return 'BUSY' end
  local kept = timeout + to.keep
  redis.call('HSET', call_key, 'st', 'S', 'tok', token, 't0', to.now, 'tool', tool, 'turn', to.turn or '')
  redis.call('PEXPIRE', call_key, kept)
  redis.call('SET', idempotency, id, 'PX', kept)
  redis.call('ZADD', to.deadlines, to.now + timeout, to.mac .. '|' .. id)
  to.begun = to.begun + 1
  return 'GO', id
end

-- K: deadlines, device, call and idempotency key of each call[, own, turn or record of an operator's call[, session]]
-- A: mac, keep ms, most pending, number of calls, id, token, timeout ms and tool of each call[, worker, fence, turn id
-- or '' for an operator's call]
-- Records calls of one device before they are published. Returns verdict, id, result and ms left of each call, one after
-- the other. A verdict is GO: publish the call; MINE: the client library repeated this begin after a fault; COLL: take
-- another id, this one is in use; OFF: the device is offline; SESS: it is in a session, and a key of it was given, as
-- the call is for idle devices; BUSY: it has too many pending calls; OVER: the turn that asks has ended or is not the
-- newest; LATE: an operator's call waited for too long; or the state of an earlier call with the same idempotency key.
-- An operator's call is begun alone.
local function call_begin(K, A)
  local count = tonumber(A[4])
  local own, asker = K[2 * count + 3], K[2 * count + 4]
  local worker, fence, turn = A[4 * count + 5], A[4 * count + 6], A[4 * count + 7]
  local operator, over = own and turn == '', false
  if own then
    if not owns(own, worker, fence) then return fenced() end
    if operator then
      local refused = operator_refuses(asker, K[4])
      if refused then return {refused[1], refused[2], refused[3], '0'} end
    else
      local newest = redis.call('HMGET', asker, 'turn', 'state')
      over = newest[1] ~= turn or newest[2] ~= 'running'
    end
  end
  local device = redis.call('HMGET', K[2], 'on', 'np')
  local to = {deadlines = K[1], mac = A[1], online = device[1], pending = tonumber(device[2] or '0'), begun = 0,
    keep = tonumber(A[2]), most = tonumber(A[3]), now = now(), turn = turn, session = K[2 * count + 5]}
  local verdicts = {}
  for i = 1, count do
    local verdict, id, result, left = 'OVER', nil, nil, nil
    if not over then
      local at = 4 * i
      verdict, id, result, left =
        begin_one(to, K[2 * i + 1], K[2 * i + 2], A[at + 1], A[at + 2], tonumber(A[at + 3]), A[at + 4])
    end
    for _, part in ipairs({verdict, id or '', result or '', left or 0}) do verdicts[#verdicts + 1] = part end
  end
  if to.begun > 0 then
    redis.call('HINCRBY', K[2], 'np', to.begun)
    if operator then redis.call('HSET', asker, 'st', 'sent') end
  end
  return verdicts
end

-- Counts pending calls of the device less. Never below zero: the device's record may be younger than the calls.
local function settle(device, ended)
  if ended == 0 then return end
  local pending = tonumber(redis.call('HGET', device, 'np') or '0')
  if pending > 0 then redis.call('HINCRBY', device, 'np', -math.min(pending, ended)) end
end

local OUTCOMES = {U = 'unknown', N = 'not_sent'}

-- States of a call: S sent, D done (`res` holds the answer), U unknown, N never sent. A call ends once, with an event;
-- `by` is the token of the request that ended it, `at` its time in ms. Returns the state, and by how many the pending
-- calls of the device become fewer.
local function finish(call_key, deadlines, events, mac, id, state, result, token, at)
  local known = redis.call('HMGET', call_key, 'st', 'by', 'late', 't0', 'tool', 'turn')
  if known[1] ~= 'S' then
    if known[2] == token then return known[1], 0 end
    if known[3] == token then return 'LATE', 0 end
    if known[1] == 'U' and state == 'D' and not known[3] then
      redis.call('HSET', call_key, 'res', result, 'late', token)
      return 'LATE', 0
    end
    return 'IGN', 0
  end
  redis.call('HSET', call_key, 'st', state, 'res', result, 'by', token)
  redis.call('ZREM', deadlines, mac .. '|' .. id)
  -- An answer begins with its status: ["ok", …]. Without a tool, a worker of an older version began the call.
  local outcome = OUTCOMES[state] or string.match(result, '^%["(%a+)"') or 'ok'
  emit(events, 'tool.called', mac, string.format('{"tool":%s,"outcome":"%s","ms":%d,"turn":"%s"}',
    cjson.encode(known[5] or ''), outcome, at - known[4], known[6] or ''))
  return state, 1
end

-- K: deadlines, device, events, each call[, own, record of an operator's call, outcomes of jobs, queue]
-- A: mac, token, number of calls, id, state and result of each call[, worker, fence, outcome, text, id of the operator's
-- call, entry of the queue]
-- Ends calls of one device that are pending. Returns the state of each; LATE, and keeps the answer, for the first answer
-- to a call that had ended as unknown; else IGN. A client that repeats the command after a fault has the same token and
-- gets the same verdicts. If the shard's owner names an operator's call, it ends with the only call, and ENDED comes
-- second.
local function call_finish(K, A)
  local count, states, ended, time = tonumber(A[3]), {}, 0, now()
  for i = 1, count do
    local at, less = 3 * i, 0
    -- An answer may have come twice: each request has a token of its own.
    states[i], less = finish(K[3 + i], K[1], K[3], A[1], A[at + 1], A[at + 2], A[at + 3], A[2] .. i, time)
    ended = ended + less
  end
  settle(K[2], ended)
  local own, with = count + 4, 3 * count + 4
  if not K[own] or states[1] ~= 'D' or not owns(K[own], A[with], A[with + 1]) then return states end
  local words = {A[with], A[with + 1], A[with + 2], A[with + 3], A[1], A[with + 4], A[with + 5]}
  operator_call_end({K[own], K[own + 1], K[own + 2], K[own + 3]}, words)
  return {states[1], 'ENDED'}
end

-- K: deadlines  A: prefix of the shard's keys, limit
-- Ends calls after their deadline as unknown; returns their 'mac|id'.
local function sweep(K, A)
  local ended = {}
  for _, member in ipairs(redis.call('ZRANGE', K[1], '-inf', now(), 'BYSCORE', 'LIMIT', 0, A[2])) do
    local mac, id = string.match(member, '^(.-)|(.+)$')
    local call, device = A[1] .. 'c:' .. mac .. ':' .. id, A[1] .. 'd:' .. mac
    -- The call's record expired before a worker swept it. Without this line the device's count of pending calls would
    -- stay too high for ever.
    if redis.call('EXISTS', call) == 0 then settle(device, 1) end
    local state, less = finish(call, K[1], A[1] .. 'ev', mac, id, 'U', '', 'sweep', now())
    settle(device, less)
    if state == 'IGN' then redis.call('ZREM', K[1], member) else ended[#ended + 1] = member end
  end
  return ended
end

-- K: revoked, minima, default minimum, version, log  A: change, MAC, generation, most entries, longest log
-- Changes the list of devices that may not connect. Each change has a number and an entry in the log, so that a watcher
-- reads the changes that it missed; it reads the whole list only if the log is too short. The minimum of a MAC only
-- rises.
-- Returns {1} if something changed, {0} if the list was so already, {-1} if it is full.
local function access(K, A)
  local what, mac, generation, most = A[1], A[2], tonumber(A[3]), tonumber(A[4])
  if what == 'revoke' then
    if redis.call('SISMEMBER', K[1], mac) == 1 then return {0} end
    if redis.call('SCARD', K[1]) >= most then return {-1} end
    redis.call('SADD', K[1], mac)
  elseif what == 'unrevoke' then
    if redis.call('SREM', K[1], mac) == 0 then return {0} end
  elseif what == 'require' then
    local held = redis.call('HGET', K[2], mac)
    if generation <= tonumber(held or redis.call('GET', K[3]) or '0') then return {0} end
    if not held and redis.call('HLEN', K[2]) >= most then return {-1} end
    redis.call('HSET', K[2], mac, A[3])
  else
    if generation == tonumber(redis.call('GET', K[3]) or '0') then return {0} end
    redis.call('SET', K[3], A[3])
  end
  local version = redis.call('INCR', K[4])
  redis.call('XADD', K[5], 'MAXLEN', '~', A[5], '*', 'v', version, 'what', what, 'mac', mac, 'gen', A[3])
  return {1}
end

-- K: version, log.  Returns {number of the last change, id of its log entry or ''}.
local function access_state(K)
  local last = redis.call('XREVRANGE', K[2], '+', '-', 'COUNT', 1)[1]
  return {redis.call('GET', K[1]) or '0', last and last[1] or ''}
end

-- K: minima, default minimum  A: MAC, …  Removes the minima of these MACs that are not above the default.
local function access_thin(K, A)
  local default, gone = tonumber(redis.call('GET', K[2]) or '0'), 0
  for _, mac in ipairs(A) do
    local held = redis.call('HGET', K[1], mac)
    if held and tonumber(held) <= default then gone = gone + redis.call('HDEL', K[1], mac) end
  end
  return {gone}
end

-- K: events  A: life s, id of the newest event that was read of an earlier stream
-- Wants events of a shard for some more time. A new stream begins with the entry `events.begun`, from which its reader
-- counts, and its ids are above those of the earlier one. Returns 1 if it is new.
local function events_wanted(K, A)
  local new = redis.call('EXISTS', K[1]) == 0
  if new then
    local ms = tonumber(string.match(A[2], '^%d+'))
    local id = ms >= now() and string.format('%d-0', ms + 1) or '*'
    redis.call('XADD', K[1], id, 'k', 'events.begun', 'm', '', 'd', '{}')
  end
  redis.call('EXPIRE', K[1], A[1])
  return new and 1 or 0
end

-- K: events  A: id of the last event that was read and stored.
-- Removes the events up to it. Returns {number of events that were ever added, number that wait}.
local function events_read(K, A)
  if redis.call('EXISTS', K[1]) == 0 then return {0, 0} end
  redis.call('XTRIM', K[1], 'MINID', A[1])
  redis.call('XDEL', K[1], A[1])
  local about = redis.call('XINFO', 'STREAM', K[1])
  local known = {}
  for i = 1, #about, 2 do known[about[i]] = about[i + 1] end
  return {known['entries-added'], known['length']}
end

-- K: clip, clips by the end of their life, their sizes  A: id, audio, ms, life ms, most bytes, prefix of the clips
-- Stores a clip; those whose life ends first give way, if all together are too large. Returns 0 if it alone is.
local function clip_put(K, A)
  local at, most = now(), tonumber(A[5])
  if #A[2] > most then return 0 end
  redis.call('DEL', K[1])
  redis.call('HSET', K[1], 'audio', A[2], 'ms', A[3])
  redis.call('PEXPIRE', K[1], A[4])
  redis.call('ZADD', K[2], at + A[4], A[1])
  redis.call('HSET', K[3], A[1], #A[2])
  local total = 0
  for _, size in ipairs(redis.call('HVALS', K[3])) do total = total + size end
  for _, id in ipairs(redis.call('ZRANGE', K[2], 0, -1)) do
    local ended = tonumber(redis.call('ZSCORE', K[2], id)) <= at
    if not ended and total <= most then break end
    if id ~= A[1] then
      total = total - redis.call('HGET', K[3], id)
      redis.call('ZREM', K[2], id)
      redis.call('HDEL', K[3], id)
      redis.call('DEL', A[6] .. id)
    end
  end
  return 1
end

-- K: clip, why it could not be made, clips by the end of their life  A: id, life ms
-- Returns {ms of a clip or '', why it could not be made or ''}; a clip that is there lives on.
local function clip_find(K, A)
  local ms = redis.call('HGET', K[1], 'ms')
  if not ms then return {'', redis.call('GET', K[2]) or ''} end
  redis.call('PEXPIRE', K[1], A[2])
  redis.call('ZADD', K[3], now() + A[2], A[1])
  return {ms, ''}
end

-- Receipts of clips that a shard keeps for its owner, who reads them at once.
local MOST_RECEIPTS, RECEIPT_SECONDS = '10000', 600

local function receipt(stream, id, state, ms)
  redis.call('XADD', stream, 'MAXLEN', '~', MOST_RECEIPTS, '*', 'd', id, 's', state, 'ms', ms)
  redis.call('EXPIRE', stream, RECEIPT_SECONDS)
end

-- K: own, delivery  A: worker, fence, life ms, way, clip or '', turn of the user in which it is spoken or ''
-- Notes the way that a delivery takes, before it is taken.
local function delivery_note(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  redis.call('HSET', K[2], 'way', A[4], 'at', now(), 'turn', A[6])
  if A[5] ~= '' then redis.call('HSET', K[2], 'clip', A[5]) end
  redis.call('PEXPIRE', K[2], A[3])
  return 1
end

-- K: delivery, receipts  A: id, ms in which it may be taken
-- Notes that a device asks for the clip of a delivery. Returns its clip, once; '' if nobody may have it (any more).
local function clip_take(K, A)
  local known = redis.call('HMGET', K[1], 'clip', 'at', 'taken')
  if not known[1] or known[3] or now() > known[2] + A[2] then return '' end
  redis.call('HSET', K[1], 'taken', now())
  receipt(K[2], A[1], 'taken', 0)
  return known[1]
end

-- K: own, delivery  A: worker, fence
-- Keeps the clip of a delivery from a device that has not asked for it. Returns 0 if it has: then it plays it.
local function clip_withdraw(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  if redis.call('HEXISTS', K[2], 'taken') == 1 then return 0 end
  redis.call('HDEL', K[2], 'clip')
  return 1
end

-- K: delivery, receipts  A: id, state (`closed`, or `unseen` behind a proxy), ms since it was taken
-- Notes, once, that the device has closed the connection over which it read a clip.
local function clip_close(K, A)
  local known = redis.call('HMGET', K[1], 'taken', 'end')
  if not known[1] or known[2] then return 0 end
  redis.call('HSET', K[1], 'end', A[2], 'ms', A[3])
  receipt(K[2], A[1], A[2], A[3])
  return 1
end

redis.register_function('fleet_lease', lease)
redis.register_function('fleet_access', access)
redis.register_function('fleet_access_state', access_state)
redis.register_function('fleet_access_thin', access_thin)
redis.register_function('fleet_renew', renew)
redis.register_function('fleet_release', release)
redis.register_function('fleet_announce', announce)
redis.register_function('fleet_retire', retire)
redis.register_function('fleet_presence', presence)
redis.register_function('fleet_outdate', outdate)
redis.register_function('fleet_agent', agent)
redis.register_function('fleet_hello', hello)
redis.register_function('fleet_goodbye', goodbye)
redis.register_function('fleet_forward', forward)
redis.register_function('fleet_ended', ended)
redis.register_function('fleet_apology', apology)
redis.register_function('fleet_orphans', orphans)
redis.register_function('fleet_register', register)
redis.register_function('fleet_tool_list', tool_list)
redis.register_function('fleet_set', fenced_set)
redis.register_function('fleet_turn_begin', turn_begin)
redis.register_function('fleet_turn_record', turn_record)
redis.register_function('fleet_turn_context', turn_context)
redis.register_function('fleet_remember', remember)
redis.register_function('fleet_spoken', spoken)
redis.register_function('fleet_events_wanted', events_wanted)
redis.register_function('fleet_events_read', events_read)
redis.register_function('fleet_report', report)
redis.register_function('fleet_memory_due', memory_due)
redis.register_function('fleet_memory_change', memory_change)
redis.register_function('fleet_gateway_session', gateway_session)
redis.register_function('fleet_operator_call_put', operator_call_put)
redis.register_function('fleet_operator_call_end', operator_call_end)
redis.register_function('fleet_jobs_begin', jobs_begin)
redis.register_function('fleet_job_calls_put', job_calls_put)
redis.register_function('fleet_devices_look', devices_look)
redis.register_function('fleet_devices_tally', devices_tally)
redis.register_function('fleet_job_calls_forget', job_calls_forget)
redis.register_function('fleet_job_calls_queued', job_calls_queued)
redis.register_function('fleet_calls_recall', calls_recall)
redis.register_function('fleet_reminder_set', reminder_set)
redis.register_function('fleet_reminders_cancel', reminders_cancel)
redis.register_function('fleet_reminders_claim', reminders_claim)
redis.register_function('fleet_reminder_end', reminder_end)
redis.register_function('fleet_tenants_put', tenants_put)
redis.register_function('fleet_clip_put', clip_put)
redis.register_function('fleet_clip_find', clip_find)
redis.register_function('fleet_delivery_note', delivery_note)
redis.register_function('fleet_clip_take', clip_take)
redis.register_function('fleet_clip_withdraw', clip_withdraw)
redis.register_function('fleet_clip_close', clip_close)
redis.register_function('fleet_call_begin', call_begin)
redis.register_function('fleet_call_finish', call_finish)
redis.register_function('fleet_sweep', sweep)
redis.register_function('fleet_boot', boot)
redis.register_function('fleet_own', own)
redis.register_function('fleet_offers_put', offers_put)
redis.register_function('fleet_offers_withdraw', offers_withdraw)
redis.register_function('fleet_offer_take', offer_take)
redis.register_function('fleet_claimed', claimed)
redis.register_function('fleet_unclaimed', unclaimed)
redis.register_function('fleet_forget_claims', forget_claims)
redis.register_function('fleet_renewal_look', renewal_look)
redis.register_function('fleet_renewal_settled', renewal_settled)
redis.register_function('fleet_renewal_scan', renewal_scan)
