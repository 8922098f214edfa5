// One suite over every engine.

import { createBuiltin } from '../inference/builtin.ts';
import { describeEngine } from './engine.ts';

describeEngine('local', createBuiltin());
