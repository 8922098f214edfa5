// Models that the server runs by itself: the section deployments.

import { section } from '#config/field.ts';
import { deploymentSettings } from '#deployments/ground/schema.ts';
import { Type } from '#lib/schema/schema-builder.ts';

const variable = '^[A-Za-z_][A-Za-z0-9_]{0,99}$';

const DeploymentSettings = Type.Object(
  {
    ...deploymentSettings,
    env_from: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        propertyNames: { pattern: variable },
        additionalProperties: { type: 'string', pattern: variable },
        maxProperties: 100,
        description:
          "Variables of the engine, each with the name of the server's environment variable that holds its value.",
      }),
    ),
  },
  section,
);

export const DeploymentsSettings = Type.Record(Type.String(), DeploymentSettings, {
  propertyNames: { pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' },
  maxProperties: 100,
  default: {},
  description:
    'Models that the server runs by itself, by the name of the deployment, with the settings of the API. See docs/deployments.md.',
});
