// The steps of the shared store that Valkey or Redis executes atomically. The arithmetic is that of
// leaky-bucket.ts and memory-store.ts; numbers are written out in full, because Lua rounds beyond 14 digits.
//
// Each scope has two keys: a hash with the counters, and a sorted set of open requests, `<id>:<cost held>`
// scored by the time their lease ends. A server that dies stops renewing, and what it held is released.

import { leakScript, unit } from '#lib/limits/leaky-bucket.ts';

const shared = `${leakScript}
local unit = ${unit}
local function text(number) return string.format('%.0f', number) end
local function costOf(member) return tonumber(string.match(member, ':(%d+)$')) end
-- Redis may evict one key of a scope and keep the other. The sorted set then says what is held.
local function heldBy(leases, saved, open)
  if open == 0 then return 0 end
  if saved then return tonumber(saved) end
  local held = 0
  for _, member in ipairs(redis.call('ZRANGE', leases, 0, -1)) do held = held + costOf(member) end
  return held
end
local function read(state, leases)
  local saved = redis.call('HMGET', state, 'rd', 'ra', 'td', 'ta', 'm', 's', 'h')
  local function number(index, default) return tonumber(saved[index] or default) end
  local open = redis.call('ZCARD', leases)
  return {
    rd = number(1, 0), ra = number(2, now), td = number(3, 0), ta = number(4, now),
    m = saved[5], s = number(6, 0), h = heldBy(leases, saved[7], open), open = open,
  }
end
`;

/**
 * ARGV: now or '', id, lease in ms, tokens, cost, month; then for each scope requests per minute, tokens per
 * minute, concurrent requests, budget ('' for no limit), spentNano and otherServersNano.
 * Without an id it only checks, and takes nothing.
 * Returns the number of the refusing scope or 0, the number of the limit, then five numbers for each scope.
 */
export const reserveScript = `${shared}
local id, lease, month = ARGV[2], tonumber(ARGV[3]), ARGV[6]
local tokens, cost = tonumber(ARGV[4]), tonumber(ARGV[5])
local scopes, refused, limit = {}, 0, 0
for index = 1, #KEYS / 2 do
  local key, leases, from = KEYS[index * 2 - 1], KEYS[index * 2], index * 6
  local one = read(key, leases)
  local requestLimit, tokenLimit = tonumber(ARGV[from + 1]), tonumber(ARGV[from + 2])
  local openLimit, budget = tonumber(ARGV[from + 3]), tonumber(ARGV[from + 4])
  if requestLimit then one.rd, one.ra = leak(one.rd, one.ra, requestLimit) end
  if tokenLimit then one.td, one.ta = leak(one.td, one.ta, tokenLimit) end
  -- Never back: the servers' clocks enter a month at slightly different times.
  if not one.m or month > one.m then one.m, one.s = month, 0 end
  if one.m == month then one.s = math.max(one.s, tonumber(ARGV[from + 5])) end
  one.spent = one.s + tonumber(ARGV[from + 6])
  for _, expired in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now)) do
    one.h, one.open = one.h - costOf(expired), one.open - 1
    redis.call('ZREM', leases, expired)
  end
  one.key, one.leases, one.rl, one.tl = key, leases, requestLimit, tokenLimit
  scopes[index] = one
  if refused == 0 then
    if budget and one.spent + one.h + cost > budget then limit = 1
    elseif requestLimit and one.rd + unit > requestLimit * unit then limit = 2
    elseif tokenLimit and one.td + tokens * unit > tokenLimit * unit then limit = 3
    elseif openLimit and one.open >= openLimit then limit = 4
    end
    if limit > 0 then refused = index end
  end
end
local reply = { refused, limit }
for _, one in ipairs(scopes) do
  if refused == 0 and id ~= '' then
    if one.rl then one.rd = one.rd + unit end
    if one.tl then one.td = one.td + tokens * unit end
    one.open = one.open + 1
    one.h = one.h + cost
    redis.call('ZADD', one.leases, now + lease, id .. ':' .. ARGV[5])
    redis.call('PEXPIRE', one.leases, 86400000)
  end
  redis.call('HSET', one.key, 'rd', text(one.rd), 'ra', text(one.ra), 'td', text(one.td),
    'ta', text(one.ta), 'm', one.m, 's', text(one.s), 'h', text(one.h))
  -- 40 days: the month's cost must outlive the month.
  redis.call('PEXPIRE', one.key, 3456000000)
  for _, number in ipairs({ one.rd, one.td, one.open, one.spent, one.h }) do
    reply[#reply + 1] = number
  end
end
return reply
`;

/**
 * ARGV: now or '', id, tokens used minus tokens reserved, cost held, cost used, month; then for each scope
 * tokens per minute or ''.
 */
export const settleScript = `${shared}
local member = ARGV[2] .. ':' .. ARGV[4]
for index = 1, #KEYS / 2 do
  local key, leases = KEYS[index * 2 - 1], KEYS[index * 2]
  local one, tokenLimit = read(key, leases), tonumber(ARGV[6 + index])
  -- If its lease has expired, what it held was released then.
  if redis.call('ZREM', leases, member) == 1 then one.h = one.h - tonumber(ARGV[4]) end
  if one.m == ARGV[6] then one.s = one.s + tonumber(ARGV[5]) end
  if tokenLimit then
    one.td, one.ta = leak(one.td, one.ta, tokenLimit)
    one.td = math.max(0, one.td + tonumber(ARGV[3]) * unit)
  end
  redis.call('HSET', key, 'td', text(one.td), 'ta', text(one.ta), 's', text(one.s), 'h', text(one.h))
  redis.call('PEXPIRE', key, 3456000000)
end
`;

/**
 * Releases a request whose reservation was not waited for. Its rates are not paid back: if it was refused, it
 * took nothing from them. ARGV: now or '', member, cost held.
 */
export const releaseScript = `${shared}
for index = 1, #KEYS / 2 do
  local key, leases = KEYS[index * 2 - 1], KEYS[index * 2]
  local one = read(key, leases)
  if redis.call('ZREM', leases, ARGV[2]) == 1 then
    redis.call('HSET', key, 'h', text(one.h - tonumber(ARGV[3])))
  end
end
`;

/**
 * Renews the lease of a running request, and restores it if Redis lost it. It can't restore a request that has
 * ended: settling is sent later on the same connection. ARGV: now or '', member, lease in ms.
 */
export const renewScript = `${shared}
for index = 1, #KEYS / 2 do
  local key, leases, member = KEYS[index * 2 - 1], KEYS[index * 2], ARGV[2]
  if not redis.call('ZSCORE', leases, member) then
    redis.call('HSET', key, 'h', text(read(key, leases).h + costOf(member)))
    redis.call('PEXPIRE', key, 3456000000)
  end
  redis.call('ZADD', leases, now + tonumber(ARGV[3]), member)
  redis.call('PEXPIRE', leases, 86400000)
end
`;
