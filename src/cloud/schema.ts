// The cloud API's wire types. Response schemas are closed: strict clients break on members they don't know.

import { Maybe, type Static } from '../lib/schema.ts';
import { Type } from '../lib/type.ts';
import { idPattern } from './errors.ts';

export const IdParams = Type.Object({ id: Type.String({ pattern: idPattern, maxLength: 64 }) });

export const NewSshKey = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 64 }),
  public_key: Maybe(Type.String({ minLength: 1, maxLength: 16_384 })),
});

export const SshKey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  public_key: Type.String(),
  private_key: Type.Optional(
    Type.String({ description: 'Only in the answer that generated it. Save it with mode 400.' }),
  ),
});

export const Region = Type.Object({ name: Type.String(), description: Type.String() });

export const CloudErrorBody = Type.Object({
  error: Type.Object({
    code: Type.String(),
    message: Type.String(),
    suggestion: Type.Optional(Type.String()),
  }),
});

export type NewSshKey = Static<typeof NewSshKey>;
export type SshKey = Static<typeof SshKey>;
