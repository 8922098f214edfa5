// Fields of forms that show what the server said about them. A field is found by its name, which is a member of the
// request or the end of its path.

import {
  Autocomplete,
  PasswordInput,
  Select,
  type SelectProps,
  Textarea,
  TextInput,
} from '@mantine/core';
import { type ComponentType, createContext, useContext } from 'react';
import type { FieldError } from '../field-errors.ts';

/** The error of the form around a field; undefined if it is about no field. */
export const FieldErrorContext = createContext<FieldError | undefined>(undefined);

export function useFieldError(name: string): string | undefined {
  const error = useContext(FieldErrorContext);
  if (error === undefined) return undefined;
  const isAbout = error.path.includes(name) || `${error.path.join('.')}.`.startsWith(`${name}.`);
  return isAbout ? error.text : undefined;
}

const withError = <Props extends object>(Field: ComponentType<Props>) =>
  function FieldWithError(props: Props & { name: string }) {
    const error = useFieldError(props.name);
    // Mantine's field for passwords does not say that it is invalid.
    return <Field {...props} {...(error === undefined ? {} : { error, 'aria-invalid': true })} />;
  };

export const TextField = withError(TextInput);
export const TextareaField = withError(
  Textarea.withProps({ autosize: true, minRows: 2, maxRows: 8 }),
);
export const PasswordField = withError(PasswordInput);
export const SelectField = withError<SelectProps<string>>(Select);
export const AutocompleteField = withError(Autocomplete);
