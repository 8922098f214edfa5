// The dialect of the dashboard's endpoints: a code, a sentence to show, and the member at fault.

import type { Dialect, Rendered } from '#http/error-format.ts';
import { toPathText } from '#lib/schema/validation-error.ts';
import { explainViolation } from '#lib/schema/violation-text.ts';

export const accountsDialect: Dialect = {
  refuse({ code, status, message: said, param, retryAfterMs }): Rendered {
    const message = code === 'no_credentials' ? 'You are not signed in.' : said;
    const headers: Record<string, string> =
      retryAfterMs === null ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) };
    return { status, headers, body: { error: { code, message, param } } };
  },

  violate(violation, _part, value): Rendered {
    const message = explainViolation(violation, value);
    const param = toPathText(violation.path) || null;
    return { status: 400, body: { error: { code: 'invalid_body', message, param } } };
  },

  own: () => undefined,
};
