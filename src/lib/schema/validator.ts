// Compiles JSON Schemas the way this server's APIs check requests. The options are shared by Fastify's compiler
// and by threads that check bodies, so that both find the same violations.

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { letterCase, withLetterCase } from './letter-case.ts';

/** Coercion would turn {"temperature": null} into 0; removal would eat what engines may understand. */
export const validatorOptions = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  // Messages name the value at fault.
  verbose: true,
  // The schemas are our own. To check and optimise them would take 0.6 s at every start, and requests gain nothing.
  validateSchema: false,
  code: { optimize: false },
} as const;

/** Open objects must not have members that differ from known ones only by letter case. */
export const createValidator = (schema: object): ValidateFunction =>
  new Ajv({ ...validatorOptions, keywords: [letterCase] }).compile(
    withLetterCase(schema) as object,
  );

/** Returns the violations. */
export type Check = (value: unknown) => ErrorObject[];

/** Compiles the schema with the first value, which takes 1 to 30 ms. */
export function createLazyCheck(schema: object): Check {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= createValidator(schema);
    return validate(value) ? [] : (validate.errors ?? []);
  };
}
