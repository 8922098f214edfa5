// One suite over every engine.

import { createBuiltin } from '#test/support/builtin.ts';
import { describeEngine } from '#test/support/conformance/engine.ts';

describeEngine('local', createBuiltin());
