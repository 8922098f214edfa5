// Compiles the schemas of routes when a request first needs them. Compiling them all took half of the processor time
// of a start.

import AjvCompiler from '@fastify/ajv-compiler';
import SerializerCompiler from '@fastify/fast-json-stringify-compiler';
import type { FastifyInstance } from 'fastify';
import { validatorOptions } from './validator.ts';

export function compileLater(app: FastifyInstance): void {
  const compileValidator = AjvCompiler()({}, { customOptions: validatorOptions });
  app.setValidatorCompiler((route) => {
    let validate: ReturnType<typeof compileValidator> | undefined;
    return (data) => {
      validate ??= compileValidator(route);
      return validate(data) === true ? true : { error: validate.errors ?? [] };
    };
  });
  const compileSerializer = SerializerCompiler()();
  app.setSerializerCompiler(({ httpStatus = '', ...route }) => {
    let serialize: ReturnType<typeof compileSerializer> | undefined;
    return (data) => {
      serialize ??= compileSerializer({ ...route, httpStatus });
      return serialize(data);
    };
  });
}
