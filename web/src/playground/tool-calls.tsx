// The tool calls of a response, with fields in which the user enters the results.

import { Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import type { ToolCall } from '#accounts/conversations/schema.ts';
import { handleSubmit } from '../browser/form-data.ts';

interface ToolCallsProps {
  calls: ToolCall[];
  /** True if results can be entered now. */
  open: boolean;
  onResults: (results: { id: string; text: string }[]) => void;
}

export function ToolCalls({ calls, open, onResults }: ToolCallsProps) {
  const [results, setResults] = useState<Record<string, string>>({});
  const submit = handleSubmit(() =>
    onResults(calls.map(({ id }) => ({ id, text: results[id] ?? '' }))),
  );
  return (
    <form onSubmit={submit} className="tool-calls">
      <Stack gap="xs">
        {calls.map((call) => (
          <div key={call.id}>
            <Text size="xs" c="dimmed">
              Tool call
            </Text>
            <pre className="code-block">
              {call.name}({call.arguments})
            </pre>
            {open && (
              <Textarea
                mt={4}
                label={`Result of ${call.name}`}
                value={results[call.id] ?? ''}
                onChange={(event) =>
                  setResults({ ...results, [call.id]: event.currentTarget.value })
                }
                required
                autosize
                minRows={1}
                maxRows={8}
              />
            )}
          </div>
        ))}
        {open && (
          <Group>
            <Button type="submit" size="xs">
              Send results
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  );
}
