// Output options: tools, a response schema, and token probabilities.

import { Button, Checkbox, Group, JsonInput, Stack } from '@mantine/core';
import type { ChatSettings } from './conversation.ts';

const exampleTools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Get the weather in a place',
      parameters: {
        type: 'object',
        properties: { place: { type: 'string' } },
        required: ['place'],
        additionalProperties: false,
      },
    },
  },
];
const exampleSchema = {
  type: 'object',
  properties: { answer: { type: 'string' }, certain: { type: 'boolean' } },
  required: ['answer', 'certain'],
  additionalProperties: false,
};
const write = (value: unknown) => JSON.stringify(value, null, 2);

interface OutputFormProps {
  settings: ChatSettings;
  onChange: (change: Partial<ChatSettings>) => void;
}

export function OutputForm({ settings, onChange }: OutputFormProps) {
  const { tools, schema, logprobs } = settings;
  const fieldProps = { className: 'json-field', autosize: true, minRows: 2, maxRows: 12 };
  const invalid = 'Invalid JSON';
  return (
    <Stack gap="sm">
      <JsonInput
        label="Tools"
        description="A JSON array of functions that the model can call."
        value={tools}
        onChange={(value) => onChange({ tools: value })}
        validationError={invalid}
        {...fieldProps}
      />
      <JsonInput
        label="Response schema"
        description="A JSON schema that every response follows."
        value={schema}
        onChange={(value) => onChange({ schema: value })}
        validationError={invalid}
        {...fieldProps}
      />
      <Group gap="xs">
        {tools === '' && (
          <Button
            variant="default"
            size="compact-xs"
            onClick={() => onChange({ tools: write(exampleTools) })}
          >
            Example tool
          </Button>
        )}
        {schema === '' && (
          <Button
            variant="default"
            size="compact-xs"
            onClick={() => onChange({ schema: write(exampleSchema) })}
          >
            Example schema
          </Button>
        )}
      </Group>
      <Checkbox
        label="Show token probabilities"
        checked={logprobs}
        onChange={(event) => onChange({ logprobs: event.currentTarget.checked })}
      />
    </Stack>
  );
}
