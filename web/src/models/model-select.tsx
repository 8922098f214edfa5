// The field for a model ID.

import { Select } from '@mantine/core';

interface ModelSelectProps {
  description: string;
  models: string[];
  value: string | null;
  onChange: (model: string | null) => void;
}

export const ModelSelect = ({ models, ...props }: ModelSelectProps) => (
  <Select
    label="Model"
    placeholder="Select a model"
    data={models}
    allowDeselect={false}
    searchable
    {...props}
  />
);
