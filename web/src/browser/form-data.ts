// Reading forms: the submit handler, and fields as trimmed text.

import type { FormEvent } from 'react';

/** A submit handler that keeps the page in place and passes on the form's fields. */
export const handleSubmit =
  (onSubmit: (form: FormData) => void) => (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSubmit(new FormData(event.currentTarget));
  };

/** The text of a field without surrounding spaces; empty if the form has no such field. */
export const toFieldText = (form: FormData, name: string) => String(form.get(name) ?? '').trim();
