// A form and its error, from the server or the browser: shown at the field that it is about, which gets the focus, or
// below the fields.

import { Stack, type StackProps } from '@mantine/core';
import { type FormEvent, type ReactNode, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { handleSubmit } from '../browser/form-data.ts';
import { findProblem } from '../browser/invalid-field.ts';
import { type FieldProblem, findFieldError } from '../field-errors.ts';
import { ErrorNotice } from './error-notice.tsx';
import { FieldErrorContext } from './fields.tsx';

interface FormProps {
  onSubmit: (form: FormData) => void;
  onChange?: () => void;
  /** Why the last submission failed; null if it did not. */
  error: unknown;
  maw?: StackProps['maw'];
  /** The buttons below the fields. */
  actions: ReactNode;
  children: ReactNode;
}

export function Form({ onSubmit, onChange, error: refusal, maw, actions, children }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  /** What the browser found wrong when the form was last submitted. */
  const [problem, setProblem] = useState<FieldProblem | null>(null);
  const error = problem ?? refusal;
  /** An error of a field, which disappears once the form changes. */
  const [dismissed, setDismissed] = useState<unknown>(null);
  const about = useMemo(
    () => (error === dismissed ? undefined : findFieldError(error)),
    [error, dismissed],
  );
  const [placed, setPlaced] = useState(false);
  useLayoutEffect(() => {
    const fields = form.current?.querySelectorAll<HTMLElement>('[aria-invalid="true"]');
    const field = about === undefined ? undefined : fields?.[0];
    setPlaced(field !== undefined);
    field?.closest('details')?.setAttribute('open', '');
    field?.focus();
  }, [about]);
  // A dialog focuses the element with this attribute. Without one, it would focus the button that closes it.
  useLayoutEffect(() => {
    if (form.current?.querySelector('[data-autofocus]')) return;
    form.current
      ?.querySelector('input:not([hidden]), textarea')
      ?.setAttribute('data-autofocus', '');
  }, []);
  const change = () => {
    if (about !== undefined) setDismissed(error);
    onChange?.();
  };
  const submit = handleSubmit((data) => {
    setProblem(null);
    onSubmit(data);
  });
  /** Comes for every invalid field. The browser shows a bubble at the first one where it is not prevented. */
  function refuse(event: FormEvent<HTMLFormElement>) {
    const found = findProblem(event.currentTarget);
    if (found === undefined) return;
    event.preventDefault();
    setProblem(found);
  }
  return (
    <form ref={form} onSubmit={submit} onInvalidCapture={refuse} onChange={change}>
      <Stack maw={maw}>
        <FieldErrorContext value={about}>{children}</FieldErrorContext>
        {!placed && error !== dismissed && <ErrorNotice error={error} />}
        {actions}
      </Stack>
    </form>
  );
}
