// What the patterns of request schemas ask for, in words, because few people read regular expressions.

const words: Readonly<Record<string, string>> = {
  '^[^@\\s\\u0000]+@[^@\\s\\u0000]+$': 'an email address such as ann@example.com',
  '^[^@\\s\\p{C}\\p{DI}]+@[^@\\s\\p{C}\\p{DI}]+$':
    'an email address such as ann@example.com, without invisible characters',
  '^[0-9a-f]{32}$': 'an id of 32 hexadecimal digits',
  '^[^\\p{Cc}]+$': 'one line of text',
  '^[^\\u0000]+$': 'text without NUL characters',
  '^([1-9][0-9]?|[1-4][0-9][0-9]|500)$': 'a whole number from 1 to 500',
  '^(100|[1-9]\\d?)$': 'a whole number from 1 to 100',
  '^(10000|[1-9]\\d{0,3})$': 'a whole number from 1 to 10000',
  '^\\d{1,9}$': 'a whole number of at most 9 digits',
  '^([1-9]\\d{0,3})(m|h|d)$': 'a time such as 30m, 24h or 7d',
  '^[\\w-]*$': 'letters, digits, underscores and hyphens',
  '^[a-zA-Z0-9_-]+$': 'letters, digits, underscores and hyphens',
  '^[a-z_]+\\.[a-z_]+$': 'the name of an action such as api_key.created',
  '^(true|false)$': 'true or false',
  '^[1-9][0-9]{0,3}$': 'a whole number from 1 to 9999',
  '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$':
    'at most 64 letters, digits, dots, underscores and hyphens, the first a letter or digit',
  '^https?://[^\\s?#@]+$':
    'an address that starts with http:// or https://, without a user, ? or #',
  '^[!-~]{1,4096}$': 'at most 4096 printable ASCII characters without spaces',
  '^[A-Za-z0-9-]{1,100}$': 'at most 100 letters, digits and hyphens',
  '^[ -~]{0,4096}$': 'at most 4096 printable ASCII characters',
  '^[a-z0-9][a-z0-9.\\-]{0,62}$':
    'at most 63 lower-case letters, digits, dots and hyphens, the first a letter or digit',
  '^[!-~]+$': 'printable ASCII characters without spaces',
  '^(unix:/[!-~]+|https://[^\\s/?#@]+)$':
    'the address of a daemon such as https://10.0.0.5:8443 or unix:/path/of/its/socket',
  '^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$': 'a SHA-256 fingerprint of 64 hexadecimal digits',
  '^[0-9a-f]{64}$': 'a SHA-256 fingerprint of 64 hexadecimal digits',
  '^/[^\\u0000-\\u001f]+$': 'an absolute path',
  '^[^\\u0000]*$': 'text without NUL characters',
  '^[a-zA-Z]+[0-9a-zA-Z\\-]*$': 'letters, digits and hyphens, the first a letter',
  '^[a-z0-9][0-9a-z\\-]{0,62}$':
    'at most 63 lower-case letters, digits and hyphens, the first a letter or digit',
  '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$':
    'at most 63 lower-case letters, digits and hyphens, the first and the last a letter or digit',
  '^[a-z][a-z0-9\\-:]+$': 'lower-case letters, digits, hyphens and colons, the first a letter',
};

/** Ends the sentence "… must". */
export function explainPattern(pattern: string): string {
  const known = words[pattern];
  return known === undefined ? `match ${pattern}` : `be ${known}`;
}
