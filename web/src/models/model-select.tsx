// The field for a model ID.

import { SelectField } from '../components/fields.tsx';

interface ModelSelectProps {
  description: string;
  models: string[];
  value: string | null;
  onChange: (model: string | null) => void;
}

export const ModelSelect = ({ models, ...props }: ModelSelectProps) => (
  <SelectField
    name="model"
    label="Model"
    placeholder="Select a model"
    data={models}
    allowDeselect={false}
    searchable
    {...props}
  />
);
