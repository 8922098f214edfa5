// The fields for an email address and for a new password. Password managers recognize them by their
// autocomplete values.

import { PasswordField, TextField } from '../components/fields.tsx';

export const EmailField = ({ description }: { description?: string }) => (
  <TextField
    label="Email"
    description={description}
    name="email"
    type="email"
    autoComplete="username"
    required
  />
);

export const NewPasswordField = ({ label, name }: { label: string; name: string }) => (
  <PasswordField
    label={label}
    description="At least 10 characters."
    name={name}
    autoComplete="new-password"
    minLength={10}
    maxLength={1024}
    required
  />
);
