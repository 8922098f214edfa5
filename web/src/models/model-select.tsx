// The field for a model ID.

import { SelectField } from '../components/fields.tsx';

interface ModelSelectProps {
  description: string;
  models: string[];
  value: string | null;
  onChange: (model: string | null) => void;
  /** Takes the focus when its dialog opens. */
  'data-autofocus'?: boolean;
}

export const ModelSelect = ({ models, ...props }: ModelSelectProps) => (
  <SelectField
    name="model"
    label="Model"
    placeholder="Select a model"
    data={models}
    allowDeselect={false}
    searchable
    // The list would cover the other fields of a dialog that has just opened.
    openOnFocus={false}
    {...props}
  />
);
