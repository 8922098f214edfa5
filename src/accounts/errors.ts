// The error format of the dashboard's endpoints: a code, a message to display, and the invalid member.

import type { ErrorFormat, Rendered } from '#http/error-format.ts';
import { toPathText } from '#lib/schema/validation-error.ts';
import { explainViolation } from '#lib/schema/violation-text.ts';

export const accountsErrorFormat: ErrorFormat = {
  renderRefusal({ code, status, message: text, param, retryAfterMs }): Rendered {
    const message = code === 'no_credentials' ? 'You are not signed in.' : text;
    const headers: Record<string, string> =
      retryAfterMs === null ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) };
    return { status, headers, body: { error: { code, message, param } } };
  },

  renderViolation(violation, _part, value): Rendered {
    const message = explainViolation(violation, value);
    const param = toPathText(violation.path) || null;
    return { status: 400, body: { error: { code: 'invalid_body', message, param } } };
  },

  renderOwn: () => undefined,
};
