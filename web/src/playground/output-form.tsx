// What holds an answer to a shape, tools and a schema, and whether to show how sure the model was.

import { Button, Checkbox, Group, JsonInput, Stack } from '@mantine/core';
import type { Conversation } from './conversation.ts';

const exampleTools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather of a place',
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
  conversation: Conversation;
  onChange: (change: Partial<Conversation>) => void;
}

export function OutputForm({ conversation, onChange }: OutputFormProps) {
  const { tools, schema, logprobs } = conversation;
  const shape = { className: 'json-field', autosize: true, minRows: 2, maxRows: 12 };
  const invalid = 'This is not valid JSON';
  return (
    <Stack gap="sm">
      <JsonInput
        label="Tools"
        description="A JSON array of functions the model may call."
        value={tools}
        onChange={(value) => onChange({ tools: value })}
        validationError={invalid}
        {...shape}
      />
      <JsonInput
        label="Schema of the answer"
        description="A JSON schema that every answer will fit."
        value={schema}
        onChange={(value) => onChange({ schema: value })}
        validationError={invalid}
        {...shape}
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
        label="Show how likely each token was"
        checked={logprobs}
        onChange={(event) => onChange({ logprobs: event.currentTarget.checked })}
      />
    </Stack>
  );
}
