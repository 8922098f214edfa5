// What upstream servers say when they refuse, in their own words, and the errors that our clients get.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EngineError, type Task } from '#inference/engine.ts';
import { judgeResponse, toFailure } from '#inference/engines/upstream/failures.ts';
import { toInferenceError } from '#inference/errors.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

const task: Task = {
  kind: 'chat',
  body: { model: 'm', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 500, top_k: 5 },
};
const completion: Task = { kind: 'completion', body: { model: 'm', prompt: 'Hi' } };

const failureOf = (status: number, body: unknown, headers = {}, asking: Task = task): EngineError =>
  toFailure(status, headers, typeof body === 'string' ? body : JSON.stringify(body), asking);

const vllm = (message: string) => ({
  object: 'error',
  message,
  type: 'BadRequestError',
  param: null,
  code: 400,
});

/** The server, its words, and the window, prompt and completion that they name. */
const overflows: [string, number, object, (number | null)[]][] = [
  [
    'vLLM',
    400,
    vllm(
      "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
    ),
    [16384, 9591, 10000],
  ],
  [
    'vLLM, later',
    400,
    {
      error: vllm(
        "This model's maximum context length is 4096 tokens. However, you requested 1000 output tokens and your prompt contains at least 3097 input tokens, for a total of at least 4097 tokens.",
      ),
    },
    [4096, 3097, 1000],
  ],
  [
    'vLLM, by parameter',
    400,
    {
      error: {
        ...vllm(
          "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 98304 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=98305)",
        ),
        param: 'input_tokens',
      },
    },
    [131072, 98305, 32768],
  ],
  [
    'vLLM, for the completion',
    400,
    vllm(
      "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 10 input tokens (5000 > 4096 - 10).",
    ),
    [4096, 10, 5000],
  ],
  [
    'vLLM, for the decoder',
    400,
    vllm('The decoder prompt (length 12324) is longer than the maximum model length of 8192.'),
    [8192, 12324, 500],
  ],
  ['vLLM, of old', 400, vllm('max_tokens must be at least 1, got -186.'), [null, null, 500]],
  [
    'vLLM 0.32, whose prompt fills the window',
    400,
    { error: vllm('max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)') },
    [null, null, 500],
  ],
  [
    'vLLM 0.32, of the prompt alone',
    400,
    {
      error: vllm(
        "This model's maximum context length is 512 tokens. However, your prompt contains at least 513 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=513)",
      ),
    },
    [512, 513, 500],
  ],
  [
    'vLLM 0.32, of the completion alone',
    400,
    {
      error: vllm(
        'max_tokens=5000 cannot be greater than max_model_len=512. Please request fewer output tokens. (parameter=max_tokens, value=5000)',
      ),
    },
    [512, null, 5000],
  ],
  [
    'SGLang, of its memory',
    400,
    vllm('Request prompt exceeds the KV memory budget: input_len=1301.'),
    [null, 1301, 500],
  ],
  [
    'SGLang',
    400,
    vllm("The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
    [40960, 61709, 500],
  ],
  [
    'SGLang, with the completion',
    400,
    vllm(
      "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of 263925 tokens: 199925 tokens from the input messages and 64000 tokens for the completion. Please reduce the number of tokens.",
    ),
    [262144, 199925, 64000],
  ],
  [
    'SGLang, when scheduling',
    400,
    vllm('Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).'),
    [59862, 160062, 500],
  ],
  [
    'llama-server',
    400,
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 14429,
        n_ctx: 8192,
      },
    },
    [8192, 14429, 500],
  ],
  [
    'llama-server, as its own fault',
    500,
    {
      error: {
        code: 500,
        message: 'the request exceeds the available context size. try increasing the context size',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 1407,
        n_ctx: 256,
      },
    },
    [256, 1407, 500],
  ],
  [
    'llama-server, with numbers',
    400,
    {
      error: {
        code: 400,
        message: 'request (25837 tokens) exceeds the available context size (25088 tokens)',
        type: 'invalid_request_error',
      },
    },
    [25088, 25837, 500],
  ],
  ['Ollama', 400, { error: 'the input length exceeds the context length' }, [null, null, 500]],
  [
    'OpenAI',
    400,
    {
      error: {
        message:
          "This model's maximum context length is 128000 tokens. However, your messages resulted in 202868 tokens (202767 in the messages, 101 in the functions). Please reduce the length of the messages or functions.",
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    },
    [128000, 202868, 500],
  ],
  [
    'TGI',
    422,
    {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`',
      error_type: 'validation',
    },
    [4096, 4000, 200],
  ],
  [
    'a hosted service',
    413,
    { error: { message: 'prompt is too long: 213462 tokens > 200000 maximum' } },
    [200000, 213462, 500],
  ],
];

describe('refusals of an upstream', () => {
  for (const [server, status, body, numbers] of overflows)
    test(`a prompt that does not fit is reported the same way for ${server}`, () => {
      for (const asking of [task, completion]) {
        const { failure, code, param, message } = failureOf(status, body, {}, asking);
        assert.equal(failure, 'rejected');
        assert.equal(code, 'context_length_exceeded');
        assert.equal(param, asking.kind === 'chat' ? 'messages' : 'prompt');
        const [window, prompt, wanted] = numbers;
        // Not more is said to be known than the server knows.
        const isAtLeast = /at least \d+ input tokens/.test(JSON.stringify(body));
        assert.equal(/has at least \d+ and/.test(message), isAtLeast);
        assert.match(message, /^This model's maximum context length is (\d+ tokens|exceeded);/);
        const said = message.replace('at least 1 is needed', '').match(/\d+/g)?.map(Number) ?? [];
        const asked = asking.kind === 'chat' || wanted !== 500 ? wanted : null;
        assert.deepEqual(
          said,
          [window, prompt, asked].filter((number) => number !== null),
        );
      }
    });

  test('a server’s complaint about a request is passed on with its parameter', () => {
    const details = {
      detail: [{ loc: ['body', 'messages', 0, 'content'], msg: 'Field required', type: 'missing' }],
    };
    const missing = failureOf(422, details);
    assert.equal(missing.code, 'missing_required_parameter');
    assert.equal(missing.param, 'messages[0].content');
    const vague = failureOf(400, { error: { ...vllm('top_k must be less'), param: 'top_k' } });
    assert.deepEqual(
      [vague.failure, vague.code, vague.param],
      ['rejected', 'invalid_value', 'top_k'],
    );
    assert.match(vague.message, /refused the request: top_k must be less/);
    const own = failureOf(400, {
      error: { message: 'no', param: 'engine_arg', code: 'unsupported_value' },
    });
    assert.deepEqual([own.code, own.param], ['unsupported_value', null]);
    const python = failureOf(400, {
      error: {
        ...vllm(
          "1 validation error:\n  {'type': 'less_than_equal', 'loc': 'body.top_k', 'msg': 'Input should be less than or equal to 9', 'input': '10', 'ctx': {'le': 9}}",
        ),
        param: 'body.top_k',
      },
    });
    assert.equal(python.param, 'top_k');
    const places: [loc: string, param: string | null][] = [
      ["('body', 'top_k')", 'top_k'],
      ["('body', 'messages', 0, 'content', 'str')", 'messages[0].content.str'],
      ["('body', 'nobody_asked')", null],
    ];
    for (const [loc, param] of places) {
      const said = `1 validation error:\n  {'type': 'string_type', 'loc': ${loc}, 'msg': 'Input should be a valid string', 'input': 3}`;
      const sglang = failureOf(400, { ...vllm(said), param: null });
      assert.equal(sglang.param, param);
      assert.match(sglang.message, /refused the request: Input should be a valid string$/);
    }
    assert.match(python.message, /refused the request: Input should be less than or equal to 9$/);
    // One complaint for each form it tried; the next member's are left out.
    const stop = failureOf(400, {
      ...vllm(
        "3 validation errors:\n  {'type': 'string_type', 'loc': ('body', 'stop', 'str'), 'msg': 'Input should be a valid string', 'input': ['a', 'b']}\n  {'type': 'too_long', 'loc': ('body', 'stop', 'list[str]'), 'msg': 'List should have at most 1 item after validation, not 2', 'input': ['a', 'b'], 'ctx': {'max_length': 1}}\n  {'type': 'int_type', 'loc': ('body', 'seed'), 'msg': 'Input should be a valid integer', 'input': 'x'}\n",
      ),
      param: null,
    });
    assert.match(
      stop.message,
      /: Input should be a valid string; List should have at most 1 item after validation, not 2$/,
    );
    assert.equal(failureOf(400, '<html>').failure, 'rejected');
    assert.equal(toInferenceError(failureOf(413, '<html>'), 'm')?.status, 413);
  });

  test('only a failure that an engine reports in JSON may be the request’s fault', () => {
    const doubtful = (status: number, body: unknown) => failureOf(status, body).isDoubtful;
    assert.equal(doubtful(500, { error: { message: 'list index out of range' } }), true);
    assert.equal(doubtful(500, '<html>'), false);
    assert.equal(doubtful(500, ''), false);
    assert.equal(doubtful(502, { error: { message: 'Bad gateway' } }), false);
    assert.equal(doubtful(503, { error: { message: 'Loading model' } }), false);
  });

  test('a request that a server does not support is refused as the contract says', () => {
    const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,' } };
    const content = [{ type: 'text', text: 'What is it?' }, picture];
    const seeing: Task = {
      kind: 'chat',
      body: { model: 'm', messages: [{ role: 'user', content }] },
    };
    const { message, code, param } = failureOf(
      400,
      { error: vllm('tiny is not a multimodal model') },
      {},
      seeing,
    );
    assert.deepEqual([code, param], ['unsupported_content_type', 'messages[0].content[1]']);
    assert.doesNotMatch(message, /tiny/);
    const onlyText =
      "Model only supports text input; received unsupported content type 'image_url'.";
    const sglang = failureOf(400, vllm(onlyText), {}, seeing);
    assert.deepEqual([sglang.code, sglang.param], [code, param]);
    const hint =
      'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj';
    const llama = failureOf(500, { error: { code: 500, message: hint } }, {}, seeing);
    assert.deepEqual([llama.failure, llama.code], ['rejected', 'unsupported_content_type']);
    const filling: Task = {
      kind: 'completion',
      body: { model: 'm', prompt: 'a', suffix: 'c' },
    };
    const suffix = failureOf(
      400,
      {
        error: {
          ...vllm('suffix is only supported for models with FIM completion rendering'),
          param: 'suffix',
        },
      },
      {},
      filling,
    );
    assert.deepEqual([suffix.code, suffix.param], ['unsupported_parameter', 'suffix']);
  });

  test('a server’s address and credentials do not appear in errors for clients', () => {
    const said = failureOf(
      400,
      vllm(
        'bad thing at http://10.0.0.7:8000/v1?key=abc on 10.0.0.7:8000 (gpu-3.internal.lan:8000) with sk-proj-12345678abcdef from /opt/models/secret/file.py',
      ),
    ).message;
    assert.match(said, /bad thing/);
    assert.doesNotMatch(said, /10\.0|internal|12345678|opt|key=/);
  });

  test('mistakes of the gateway are not reported as the client’s', () => {
    const bodies: [number, unknown][] = [
      [401, { error: { message: 'Incorrect API key provided: sk-1', code: 'invalid_api_key' } }],
      [403, { detail: 'Forbidden' }],
      [400, { error: { message: 'API key not valid. Please pass a valid API key.' } }],
      [404, { detail: 'Not Found' }],
      [404, { error: { message: 'The model `up` does not exist.', code: 404 } }],
      [400, { error: { message: 'nope', code: 'model_not_found' } }],
      [429, { error: { message: 'You exceeded your quota', code: 'insufficient_quota' } }],
      [302, ''],
    ];
    for (const [status, body] of bodies) {
      const error = failureOf(status, body);
      assert.equal(error.failure, 'unavailable');
      assert.equal(toInferenceError(error, 'm')?.status, 502);
      assert.doesNotMatch(toInferenceError(error, 'm')?.message ?? '', /key|quota|sk-/i);
    }
    const unknown = failureOf(404, { error: { message: 'The model `up` does not exist.' } });
    assert.match(unknown.message, /does not know its model/);
  });

  test('a completion that a server of chats has no endpoint for is not held against the server', () => {
    for (const status of [404, 405, 501]) {
      const { failure, code, message } = failureOf(status, { detail: 'Not Found' }, {}, completion);
      assert.deepEqual([failure, code], ['rejected', 'model_not_supported']);
      // A server at a wrong URL answers the same.
      assert.match(message, /chat\/completions.*URL of the backend is wrong/);
    }
    const unknown = { error: { message: 'The model `up` does not exist.' } };
    assert.equal(failureOf(404, unknown, {}, completion).failure, 'unavailable');
  });

  test('a client’s mistake that a server reports as its own stays the client’s', () => {
    const said = [
      'Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]',
      'tools param requires --jinja flag',
      'invalid JSON schema in format',
    ];
    for (const message of said) {
      const { failure, code } = failureOf(500, { error: { code: 500, message } });
      assert.deepEqual([failure, code], ['rejected', 'invalid_value'], message);
    }
    assert.equal(failureOf(500, { error: { message: 'CUDA error' } }).failure, 'unavailable');
    const leak = failureOf(
      400,
      vllm('registry.example.ai/library/tiny:latest does not support insert'),
    );
    assert.doesNotMatch(leak.message, /registry|tiny/);
  });

  test('a KV cache that other requests fill counts as overload, not as a long prompt', () => {
    const shared = { error: { code: 500, message: 'Context size has been exceeded.' } };
    assert.equal(failureOf(500, shared).failure, 'overloaded');
  });

  test('overload is distinguished from failure, with its retry-after', () => {
    const busy = failureOf(429, {}, { 'retry-after': '3' });
    assert.deepEqual([busy.failure, busy.retryAfterMs], ['overloaded', 3000]);
    assert.equal(failureOf(503, {}, { 'retry-after-ms': '250' }).retryAfterMs, 250);
    const date = new Date(Date.now() + 5000).toUTCString();
    const dated = failureOf(503, {}, { 'retry-after': date }).retryAfterMs ?? 0;
    assert.ok(dated > 2000 && dated <= 5000);
    assert.equal(failureOf(429, {}, { 'retry-after': '1e9' }).retryAfterMs, 600_000);
    for (const nonsense of ['soon', '', '-5'])
      assert.equal(failureOf(429, '<html>', { 'retry-after': nonsense }).retryAfterMs, null);
    assert.equal(failureOf(503, vllm('The request queue is full.')).failure, 'overloaded');
    assert.equal(failureOf(503, { error: { message: 'Loading model' } }).failure, 'unavailable');
    assert.equal(failureOf(500, '<h1>500</h1>').failure, 'unavailable');
    assert.equal(toInferenceError(failureOf(504, ''), 'm')?.code, 'upstream_timeout');
  });

  test('a server that is unavailable for a while is a 503 with a retry-after, which it need not send', () => {
    const loading = failureOf(503, { error: { message: 'Loading model' } });
    const { status, code, headers } = toInferenceError(loading, 'm') ?? {};
    assert.deepEqual([status, code], [503, 'model_unavailable']);
    assert.equal(headers?.['retry-after'], '1');
    assert.equal(toInferenceError(failureOf(502, ''), 'm')?.status, 502);
  });

  test('a response is judged by its status and retry-after as an error is', () => {
    const statuses = [
      302, 400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 501, 502, 503, 504, 529,
    ];
    for (const status of statuses)
      for (const headers of [{}, { 'retry-after': '3' }, { 'retry-after-ms': '250' }])
        for (const asking of [task, completion]) {
          const { failure } = failureOf(status, '', headers, asking);
          const judged = judgeResponse(status, headers, asking.kind === 'chat');
          assert.equal(judged, failure === 'unavailable' ? 'failed' : 'unknown', `${status}`);
        }
    assert.equal(judgeResponse(200, {}, true), 'passed');
    assert.equal(judgeResponse(500, {}, true), 'unknown');
    assert.equal(judgeResponse(503, { 'retry-after': 'soon' }, true), 'failed');
  });

  test('parts of a request that a server echoes are not logged', () => {
    const { cause } = failureOf(500, { error: { message: 'secret prompt', type: 'boom' } });
    assert.match(String(cause), /boom/);
    assert.doesNotMatch(String(cause), /secret/);
  });

  test('an invalid error body becomes an engine failure', () => {
    const names = [
      'error',
      'errors',
      'detail',
      'message',
      'msg',
      'code',
      'type',
      'param',
      'status',
    ];
    const name = fc.constantFrom(...names, 'loc', 'n_ctx', 'object', 'toString', '__proto__');
    const words = fc.constantFrom('context length is 5 tokens', "1 validation error:\n {'loc': 5");
    const leaf = fc.oneof(words, fc.jsonValue({ maxDepth: 1 }));
    const { body } = fc.letrec<{ body: unknown }>((tie) => ({
      body: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.dictionary(name, tie('body')),
        fc.array(tie('body'), { maxLength: 3 }),
      ),
    }));
    const status = fc.constantFrom(200, 300, 400, 401, 404, 413, 422, 429, 500, 503);
    const property = fc.property(status, body, fc.constantFrom(task, completion), (...given) => {
      const failure = failureOf(given[0], JSON.stringify(given[1]), {}, given[2]);
      assert.ok(failure instanceof EngineError);
    });
    fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(2000) });
  });
});
