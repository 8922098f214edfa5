// The formats that can be generated; each string format is a pattern that matches only valid strings. The patterns are
// narrower than the standards on purpose, so that the output passes every common validator.

const thirtyDays = '(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)';
const thirtyOneDays = '(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])';
const february = '02-(?:0[1-9]|1\\d|2[0-8])';
const leapYear = '(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)';
const date = `(?:\\d{4}-(?:${thirtyDays}|${thirtyOneDays}|${february})|${leapYear}-02-29)`;

// No leap seconds: whether one is valid depends on the offset and the year.
const time =
  '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)';

const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const ipv4 = `${octet}(?:\\.${octet}){3}`;

const group = '[0-9a-fA-F]{1,4}';
const ipv6 = [
  `(?:${group}:){7}${group}`,
  ...[1, 2, 3, 4, 5, 6].map((left) => `(?:${group}:){1,${left}}(?::${group}){1,${7 - left}}`),
  `::(?:${group}:){0,6}${group}`,
  `(?:${group}:){1,7}:`,
  '::',
].join('|');

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?';
const hostname = `${label}(?:\\.${label}){0,4}`;

const escaped = '%[0-9a-fA-F]{2}';
const pathChar = `(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|${escaped})`;
const uri = `[a-z][a-z0-9+.-]{0,15}://${hostname}(?::[1-9]\\d{0,3})?(?:/${pathChar}*)*(?:\\?${pathChar}*)?(?:#${pathChar}*)?`;

const count = '[1-9]\\d{0,3}';
const month = `${count}M(?:${count}D)?`;
const minute = `${count}M(?:${count}S)?`;
const clock = `T(?:${count}H(?:${minute})?|${minute}|${count}S)`;
const duration = `P(?:(?:${count}Y(?:${month})?|${month}|${count}D)(?:${clock})?|${clock}|${count}W)`;

const patterns: ReadonlyMap<unknown, string> = new Map([
  ['date', date],
  ['time', time],
  ['date-time', `${date}T${time}`],
  ['duration', duration],
  ['uuid', '[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'],
  ['email', `[a-zA-Z0-9_+-]{1,20}(?:\\.[a-zA-Z0-9_+-]{1,20}){0,2}@${label}(?:\\.${label}){1,3}`],
  ['ipv4', ipv4],
  ['ipv6', ipv6],
  ['hostname', hostname],
  ['uri', uri],
]);

/** OpenAPI's number formats. They do not apply to strings. */
const ranges: ReadonlyMap<unknown, { min: number; max: number }> = new Map([
  ['int32', { min: -(2 ** 31), max: 2 ** 31 - 1 }],
  ['int64', { min: -Infinity, max: Infinity }],
  ['float', { min: -Infinity, max: Infinity }],
  ['double', { min: -Infinity, max: Infinity }],
]);

/** The pattern that a whole string of the format matches; undefined for an unsupported format. */
export function findFormatPattern(format: unknown): string | undefined {
  const pattern = patterns.get(format);
  return pattern && `^(?:${pattern})$`;
}

export function findFormatRange(format: unknown): { min: number; max: number } | undefined {
  return ranges.get(format);
}
