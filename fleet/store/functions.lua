#!lua name=fleet

-- Every step of a session or a tool call is one function: one round trip, and no other client in between.
-- All keys of one call carry the same hash tag, the shard, so that they live on one node of a cluster.

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Whether `worker` with `fence` still owns the shard.
local function owns(own, worker, fence)
  local lease = redis.call('HMGET', own, 'w', 'f')
  return lease[1] == worker and lease[2] == fence
end

local function fenced()
  return redis.error_reply('FENCED this worker no longer owns the shard')
end

-- K: own, fence  A: worker, ttl ms.  Returns {1, fence} when the lease is held, {0, owner} when it is another's.
-- The fence survives the loss of its counter, because it never falls behind the clock.
local function lease(K, A)
  local owner = redis.call('HGET', K[1], 'w')
  if owner == A[1] then
    redis.call('PEXPIRE', K[1], A[2])
    return {1, redis.call('HGET', K[1], 'f')}
  end
  if owner then return {0, owner} end
  local fence = string.format('%d', math.max(tonumber(redis.call('GET', K[2]) or '0') + 1, now()))
  redis.call('SET', K[2], fence)
  redis.call('HSET', K[1], 'w', A[1], 'f', fence)
  redis.call('PEXPIRE', K[1], A[2])
  return {1, fence}
end

-- K: own  A: worker.  Gives the lease back, if it is still held.
local function release(K, A)
  if redis.call('HGET', K[1], 'w') ~= A[1] then return 0 end
  return redis.call('DEL', K[1])
end

-- K: workers  A: worker, ttl s.  Says that a worker lives; returns how many do.
local function announce(K, A)
  local at = tonumber(redis.call('TIME')[1])
  redis.call('ZADD', K[1], at, A[1])
  redis.call('ZREMRANGEBYSCORE', K[1], '-inf', at - tonumber(A[2]))
  return redis.call('ZCARD', K[1])
end

-- K: device  A: online 0|1, epoch, ttl s.  Applied only if not older than what is known.
-- Returns {applied, session id or '', epoch of the tool list or ''}.
local function presence(K, A)
  local known = redis.call('HMGET', K[1], 'ep', 'sid', 'tep')
  if tonumber(A[2]) < tonumber(known[1] or '0') then return {0, '', ''} end
  redis.call('HSET', K[1], 'on', A[1], 'ep', A[2])
  redis.call('EXPIRE', K[1], A[3])
  return {1, known[2] or '', known[3] or ''}
end

-- K: own, session, device, tools
-- A: worker, fence, session ttl s, device ttl s, number of device fields, device fields…, session fields…
-- Replaces the device's session. Returns {old session id, old edge, epoch, epoch of the tool list or ''}.
local function hello(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local old = redis.call('HMGET', K[2], 'id', 'edge')
  local device = redis.call('HMGET', K[3], 'ep', 'tep')
  local split = 5 + tonumber(A[5])
  for at = 6, split, 2 do redis.call('HSET', K[3], A[at], A[at + 1]) end
  redis.call('HSET', K[3], 'on', '1')
  redis.call('EXPIRE', K[3], A[4])
  local tools = redis.call('EXPIRE', K[4], A[4])
  redis.call('DEL', K[2])
  for at = split + 1, #A, 2 do redis.call('HSET', K[2], A[at], A[at + 1]) end
  redis.call('EXPIRE', K[2], A[3])
  return {old[1] or '', old[2] or '', device[1] or '', tools == 1 and device[2] or ''}
end

-- K: own, session, device  A: worker, fence, session id.  Ends the session if it is the one. Returns its edge or ''.
local function goodbye(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local session = redis.call('HMGET', K[2], 'id', 'edge')
  if session[1] ~= A[3] then return '' end
  redis.call('DEL', K[2])
  redis.call('HDEL', K[3], 'sid')
  return session[2] or ''
end

-- K: own, target  A: worker, fence, ttl s, field, value, …  Writes fields of a hash as the shard's owner.
local function fenced_set(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  for at = 4, #A, 2 do redis.call('HSET', K[2], A[at], A[at + 1]) end
  redis.call('EXPIRE', K[2], A[3])
  return 1
end

-- K: own, session, turn  A: worker, fence, session id, session ttl s, turn ttl s, turn id, messages, token
-- Writes down that a turn begins in a live session. Returns {'GONE'}, {'AGAIN'} when it began before, or
-- {'GO', field, value, …} of the session, also when this very begin was repeated by the client library.
local function turn_begin(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  if redis.call('HGET', K[2], 'id') ~= A[3] then return {'GONE'} end
  local known = redis.call('HMGET', K[3], 'turn', 'tok')
  if known[1] == A[6] and known[2] ~= A[8] then return {'AGAIN'} end
  redis.call('DEL', K[3])
  redis.call('HSET', K[3], 'turn', A[6], 'tok', A[8], 'state', 'running', 'messages', A[7], 'sentences', 0, 'lines', 0)
  redis.call('EXPIRE', K[3], A[5])
  redis.call('EXPIRE', K[2], A[4])
  local answer = {'GO'}
  for _, part in ipairs(redis.call('HGETALL', K[2])) do answer[#answer + 1] = part end
  return answer
end

-- K: tools, history, reports  A: most messages, oldest report ms
-- All that a turn needs to know. Returns {tools or '', number of messages, message, …, 'age-in-ms report', …}.
local function turn_context(K, A)
  local most = tonumber(A[1])
  local history = most > 0 and redis.call('LRANGE', K[2], -most, -1) or {}
  local answer = {redis.call('GET', K[1]) or '', #history}
  for _, line in ipairs(history) do answer[#answer + 1] = line end
  local oldest = tonumber(A[2])
  for _, line in ipairs(redis.call('LRANGE', K[3], 0, -1)) do
    local at, text = string.match(line, '^(%d+) (.*)$')
    local age = at and now() - tonumber(at)
    if age and age <= oldest then answer[#answer + 1] = string.format('%d %s', math.max(age, 0), text) end
  end
  return answer
end

-- K: own, history, turn
-- A: worker, fence, history ttl s, longest history, turn id, turn ttl s, state, messages or '', line, …
-- Puts a turn's lines into the history, in place of those that it put there before. 0 when it is not the newest turn.
local function remember(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  local turn = redis.call('HMGET', K[3], 'turn', 'lines')
  if turn[1] ~= A[5] then return 0 end
  local earlier = tonumber(turn[2] or '0')
  if earlier > 0 then redis.call('LTRIM', K[2], 0, -earlier - 1) end
  for at = 9, #A do redis.call('RPUSH', K[2], A[at]) end
  redis.call('LTRIM', K[2], -tonumber(A[4]), -1)
  redis.call('EXPIRE', K[2], A[3])
  if A[8] ~= '' then redis.call('HSET', K[3], 'messages', A[8]) end
  redis.call('HSET', K[3], 'state', A[7], 'lines', #A - 8)
  redis.call('EXPIRE', K[3], A[6])
  return 1
end

-- K: own, reports  A: worker, fence, ttl s, most, report.  Keeps what a device reported, with the time.
local function report(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  redis.call('RPUSH', K[2], string.format('%d %s', now(), A[5]))
  redis.call('LTRIM', K[2], -tonumber(A[4]), -1)
  redis.call('EXPIRE', K[2], A[3])
  return 1
end

-- K: call, idempotency key, deadlines, device  A: id, token, timeout ms, keep ms, mac, most pending
-- Returns {verdict, id, result}: GO to publish, MINE when this very begin was repeated by the client library, COLL for another
-- id, OFF or BUSY when nothing may be sent, or the known state of an earlier call with the same idempotency key.
local function call_begin(K, A)
  local earlier = redis.call('GET', K[2])
  if earlier then
    local key = string.gsub(K[1], '[^:]+$', earlier)
    local call = redis.call('HMGET', key, 'st', 'tok', 'res')
    if call[1] == false then return {'U', earlier, ''} end
    if call[2] == A[2] and call[1] == 'S' then return {'MINE', earlier, ''} end
    return {call[1], earlier, call[3] or ''}
  end
  if redis.call('EXISTS', K[1]) == 1 then return {'COLL', '', ''} end
  local device = redis.call('HMGET', K[4], 'on', 'np')
  if device[1] == '0' then return {'OFF', '', ''} end
  if tonumber(device[2] or '0') >= tonumber(A[6]) then return {'BUSY', '', ''} end
  local begun = now()
  local kept = tonumber(A[3]) + tonumber(A[4])
  redis.call('HSET', K[1], 'st', 'S', 'tok', A[2], 't0', begun)
  redis.call('PEXPIRE', K[1], kept)
  redis.call('SET', K[2], A[1], 'PX', kept)
  redis.call('ZADD', K[3], begun + A[3], A[5] .. '|' .. A[1])
  redis.call('HINCRBY', K[4], 'np', 1)
  return {'GO', A[1], ''}
end

-- One call less is pending at the device; never below none, should its record be younger than the call.
local function settle(device)
  if tonumber(redis.call('HGET', device, 'np') or '0') > 0 then redis.call('HINCRBY', device, 'np', -1) end
end

-- States of a call: S sent, D done (res holds the answer), U unknown, N never sent. Ended once, `by` a token.
local function finish(call_key, deadlines, device, mac, id, state, result, token)
  local known = redis.call('HMGET', call_key, 'st', 'by', 'late')
  if known[1] ~= 'S' then
    if known[2] == token then return known[1] end
    if known[3] == token then return 'LATE' end
    if known[1] == 'U' and state == 'D' and not known[3] then
      redis.call('HSET', call_key, 'res', result, 'late', token)
      return 'LATE'
    end
    return 'IGN'
  end
  redis.call('HSET', call_key, 'st', state, 'res', result, 'by', token)
  redis.call('ZREM', deadlines, mac .. '|' .. id)
  settle(device)
  return state
end

-- K: call, deadlines, device  A: mac, id, state, result, token.
-- Compare and set: returns the state, LATE for the first answer to a call that had ended as unknown and keeps it, or IGN.
-- The same token again, from a client that repeats a command after a fault, gets the same answer.
local function call_finish(K, A)
  return finish(K[1], K[2], K[3], A[1], A[2], A[3], A[4], A[5] or '')
end

-- K: deadlines  A: prefix of the shard's keys, limit.  Ends calls whose deadline passed as unknown; returns their 'mac|id'.
local function sweep(K, A)
  local ended = {}
  for _, member in ipairs(redis.call('ZRANGE', K[1], '-inf', now(), 'BYSCORE', 'LIMIT', 0, A[2])) do
    local mac, id = string.match(member, '^(.-)|(.+)$')
    local call, device = A[1] .. 'c:' .. mac .. ':' .. id, A[1] .. 'd:' .. mac
    -- Its record expired while nobody swept; else the device would count as busy with it for ever.
    if redis.call('EXISTS', call) == 0 then settle(device) end
    local state = finish(call, K[1], device, mac, id, 'U', '', 'sweep')
    if state == 'IGN' then redis.call('ZREM', K[1], member) else ended[#ended + 1] = member end
  end
  return ended
end

redis.register_function('fleet_lease', lease)
redis.register_function('fleet_release', release)
redis.register_function('fleet_announce', announce)
redis.register_function('fleet_presence', presence)
redis.register_function('fleet_hello', hello)
redis.register_function('fleet_goodbye', goodbye)
redis.register_function('fleet_set', fenced_set)
redis.register_function('fleet_turn_begin', turn_begin)
redis.register_function('fleet_turn_context', turn_context)
redis.register_function('fleet_remember', remember)
redis.register_function('fleet_report', report)
redis.register_function('fleet_call_begin', call_begin)
redis.register_function('fleet_call_finish', call_finish)
redis.register_function('fleet_sweep', sweep)
