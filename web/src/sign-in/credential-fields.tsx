// The fields for an email address and for a new password. Password managers recognize them by their
// autocomplete values.

import { PasswordInput, TextInput } from '@mantine/core';

export const EmailField = ({ description }: { description?: string }) => (
  <TextInput
    label="Email"
    description={description}
    name="email"
    type="email"
    autoComplete="username"
    required
  />
);

export const NewPasswordField = ({ label, name }: { label: string; name: string }) => (
  <PasswordInput
    label={label}
    description="At least 10 characters."
    name={name}
    autoComplete="new-password"
    minLength={10}
    maxLength={1024}
    required
  />
);
