// The tools that an answer called, and where a person plays the tool and says what it returned.

import { Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import type { ToolCall } from './conversation.ts';

interface ToolCallsProps {
  calls: ToolCall[];
  /** Whether the results can be given now. */
  open: boolean;
  onResults: (results: { id: string; text: string }[]) => void;
}

export function ToolCalls({ calls, open, onResults }: ToolCallsProps) {
  const [results, setResults] = useState<Record<string, string>>({});
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onResults(calls.map(({ id }) => ({ id, text: results[id] ?? '' })));
  };
  return (
    <form onSubmit={submit} className="tool-calls">
      <Stack gap="xs">
        {calls.map((call) => (
          <div key={call.id}>
            <Text size="xs" c="dimmed">
              Calls a tool
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
                withAsterisk={false}
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
              Send the results
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  );
}
