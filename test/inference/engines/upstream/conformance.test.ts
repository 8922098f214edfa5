// The suite of engines over the upstream engine: before a scripted server, and before a second Millrace
// with its own model, which is a real engine through two hops.

import { after } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { createUpstreamEngine } from '#inference/engines/upstream/upstream.ts';
import { describeEngine } from '#test/support/conformance/engine.ts';
import { startTestServer } from '#test/support/server.ts';
import { upstreamOptions } from '#test/support/upstream.ts';

// Both before the first suite: once the suites that exist have ended, the runner closes what was started.
const scripted = await startScriptedUpstream({ words: 20 });
after(() => scripted.close());
const millrace = await startTestServer();

describeEngine(
  'upstream of a scripted server',
  createUpstreamEngine(upstreamOptions(scripted.url)),
);

describeEngine(
  'upstream of another Millrace',
  createUpstreamEngine(
    upstreamOptions(`${millrace.url}/v1`, { apiKey: millrace.key, model: 'hermes3-8b' }),
  ),
);
