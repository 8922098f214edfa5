// An error with the server's message and suggestion, and the request ID to look up in its log.

import { Alert, Button, Code, Stack, Text } from '@mantine/core';
import IconAlertTriangle from '@tabler/icons-react/dist/esm/icons/IconAlertTriangle.mjs';
import { toFieldName } from '#lib/schema/problem-words.ts';
import { ApiError } from '../api.ts';
import { type FieldError, findFieldError } from '../field-errors.ts';

export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (error === null || error === undefined) return null;
  const { suggestion, requestId } =
    error instanceof ApiError ? error : { suggestion: null, requestId: null };
  const about = findFieldError(error);
  return (
    <Alert
      role="alert"
      variant="default"
      icon={<IconAlertTriangle color="var(--mantine-color-error)" aria-hidden />}
      classNames={{ root: 'error-notice' }}
    >
      <Stack gap={6} align="flex-start">
        <Text size="sm" className="breakable">
          {toText(error, about)}
        </Text>
        {suggestion && about === undefined && <Text size="sm">{suggestion}</Text>}
        {requestId && (
          <Text size="xs" c="dimmed">
            Request ID <Code>{requestId}</Code>
          </Text>
        )}
        {onRetry && (
          <Button variant="default" size="xs" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

function toText(error: unknown, about: FieldError | undefined): string {
  if (!(error instanceof Error)) return 'Something went wrong.';
  if (about === undefined || about.text === error.message) return error.message;
  return `${toFieldName(about.path)}: ${about.text}`;
}
