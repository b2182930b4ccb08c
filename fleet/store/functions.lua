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

-- K: own, list  A: worker, fence, ttl s, length, value, …  Appends to a list as the shard's owner and keeps the newest.
local function fenced_append(K, A)
  if not owns(K[1], A[1], A[2]) then return fenced() end
  for at = 5, #A do redis.call('RPUSH', K[2], A[at]) end
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

-- States of a call: S sent, D done (res holds the answer), U unknown, N never sent.
local function finish(call_key, deadlines, device, mac, id, state, result)
  local known = redis.call('HGET', call_key, 'st')
  if known ~= 'S' then
    if known == 'U' and state == 'D' then
      redis.call('HSET', call_key, 'res', result, 'late', '1')
      return 'LATE'
    end
    return 'IGN'
  end
  redis.call('HSET', call_key, 'st', state, 'res', result)
  redis.call('ZREM', deadlines, mac .. '|' .. id)
  if redis.call('EXISTS', device) == 1 then redis.call('HINCRBY', device, 'np', -1) end
  return state
end

-- K: call, deadlines, device  A: mac, id, state, result.  Compare and set: what is not pending any more is ignored.
local function call_finish(K, A)
  return finish(K[1], K[2], K[3], A[1], A[2], A[3], A[4])
end

-- K: deadlines  A: prefix of the shard's keys, limit.  Ends calls whose deadline passed as unknown; returns their 'mac|id'.
local function sweep(K, A)
  local ended = {}
  for _, member in ipairs(redis.call('ZRANGE', K[1], '-inf', now(), 'BYSCORE', 'LIMIT', 0, A[2])) do
    local mac, id = string.match(member, '^(.-)|(.+)$')
    local state = finish(A[1] .. 'c:' .. mac .. ':' .. id, K[1], A[1] .. 'd:' .. mac, mac, id, 'U', '')
    if state == 'IGN' then redis.call('ZREM', K[1], member) else ended[#ended + 1] = member end
  end
  return ended
end

redis.register_function('fleet_lease', lease)
redis.register_function('fleet_release', release)
redis.register_function('fleet_presence', presence)
redis.register_function('fleet_hello', hello)
redis.register_function('fleet_goodbye', goodbye)
redis.register_function('fleet_set', fenced_set)
redis.register_function('fleet_append', fenced_append)
redis.register_function('fleet_call_begin', call_begin)
redis.register_function('fleet_call_finish', call_finish)
redis.register_function('fleet_sweep', sweep)
