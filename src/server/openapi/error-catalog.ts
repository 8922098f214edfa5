// Every error that the two public APIs can return, for the API description and for docs/errors.md. A test compares it
// with the code.

export interface DescribedError {
  status: number;
  /** Null for the one error of the inference API without a code: a missing key. */
  code: string | null;
  means: string;
  /** What the reader can do about it. */
  fix: string;
}

/** What an error means, and what the reader can do about it, by its status and its code. */
type Catalog = Readonly<Record<number, Readonly<Record<string, readonly [string, string]>>>>;

const toErrors = (catalog: Catalog): readonly DescribedError[] =>
  Object.entries(catalog).flatMap(([status, byCode]) =>
    Object.entries(byCode).map(([code, [means, fix]]) => ({
      status: Number(status),
      code: code === '' ? null : code,
      means,
      fix,
    })),
  );

const correctMember = 'Correct the member that `param` names.';

export const inferenceErrors = toErrors({
  400: {
    invalid_value: ['A value is not allowed.', correctMember],
    invalid_type: ['A value has the wrong JSON type.', correctMember],
    missing_required_parameter: ['A required member is missing.', correctMember],
    integer_below_min_value: ['An integer is too small.', correctMember],
    integer_above_max_value: [
      'An integer is too large, such as `max_tokens` above what the model may answer with.',
      correctMember,
    ],
    decimal_below_min_value: ['A number is too small.', correctMember],
    decimal_above_max_value: ['A number is too large.', correctMember],
    string_below_min_length: ['A text is too short.', correctMember],
    string_above_max_length: ['A text is too long.', correctMember],
    array_below_min_length: ['A list has too few items.', correctMember],
    array_above_max_length: ['A list has too many items.', correctMember],
    context_length_exceeded: [
      'The prompt and `max_tokens` together are over the model’s context window.',
      'Shorten the prompt, lower `max_tokens`, or choose a model with a larger window.',
    ],
    model_not_supported: [
      'The model does not do what the endpoint is for: it generates, embeds texts or ranks documents.',
      'Send the request to the endpoint that the message names, or choose another model.',
    ],
    previous_response_not_found: [
      'The response that `previous_response_id` names, or one before it, was not stored, was deleted or has expired.',
      'Send the conversation as `input`.',
    ],
    unsupported_parameter: [
      'The model, or the server that runs it, does not support a member.',
      'Leave the member out, or choose another model.',
    ],
    unknown_parameter: [
      'A member differs from a known one only by letter case, such as `Model`, which some servers would obey.',
      'Write the name as the message says.',
    ],
    unsupported_content_type: [
      'A message has a part, such as an image, that the model does not accept.',
      'Send text parts, or choose a model that accepts images.',
    ],
    invalid_json: ['The body is not valid JSON.', 'The message says where parsing stopped.'],
    invalid_request: [
      'The bytes are not a valid HTTP/1.1 request.',
      'Check the client or the proxy in front of the server.',
    ],
    invalid_form: [
      'The form of an upload can’t be read.',
      'Send `multipart/form-data` with a `file` and its `purpose`.',
    ],
  },
  401: {
    '': [
      'No API key was sent.',
      'Send it as `Authorization: Bearer <key>`, as `x-api-key`, or as the user name of HTTP Basic.',
    ],
    invalid_api_key: [
      'The API key is wrong, revoked or expired.',
      'Create a new key in the dashboard or with `millrace keys create`.',
    ],
  },
  403: {
    insufficient_scope: [
      'The key may not use this API, this model or this address.',
      'Use a key with the `inference` scope, or have the key changed.',
    ],
  },
  404: {
    model_not_found: ['No model has this id.', '`GET /v1/models` lists the ids that exist.'],
    unknown_url: ['There is no such path.', 'Check the path. The base URL ends with `/v1`.'],
    not_found: ['The object does not exist.', 'Check the id.'],
    file_not_found: ['The file does not exist in this account.', 'List the files.'],
    batch_not_found: ['The batch does not exist in this account.', 'List the batches.'],
  },
  405: {
    method_not_allowed: [
      'The path does not accept this method.',
      'The `allow` header lists the methods it accepts.',
    ],
  },
  408: {
    request_timeout: [
      'The body did not arrive in time.',
      'Check the connection and send it again.',
    ],
  },
  409: {
    conflict: ['The request conflicts with the current state.', 'Read the message, then decide.'],
    file_in_use: ['A batch still reads the file.', 'Cancel the batch, or wait until it has ended.'],
    batch_not_cancellable: ['The batch has ended.', 'Read its results.'],
  },
  413: {
    request_too_large: [
      'The body is larger than the server or the backend accepts.',
      'Send a smaller body, or raise `inference.max_body_mib`.',
    ],
    file_too_large: ['The file is too large.', 'Split it into several files.'],
    storage_limit_exceeded: [
      'The account has too many files, or too many bytes in them.',
      'Delete files, or ask the operator for a larger `inference.batches.account_files_mib`.',
    ],
  },
  415: {
    unsupported_media_type: [
      'The body is not declared as JSON.',
      'Send `Content-Type: application/json`.',
    ],
  },
  417: {
    expectation_failed: [
      'The server does not support the value of the `expect` header.',
      'Leave the header out.',
    ],
  },
  421: {
    misdirected_request: [
      'The `host` header names a server that this is not.',
      'Use a name from `server.public_url` or `server.allowed_hosts`.',
    ],
  },
  429: {
    rate_limit_exceeded: [
      'The key or the account is over its limit of requests, tokens or concurrent requests.',
      'Wait for the time in `retry-after`. OpenAI’s SDKs do.',
    ],
    insufficient_quota: [
      'The monthly budget of the key or the account does not cover the request.',
      'Have the budget raised, or wait for the 1st of the month (UTC).',
    ],
    batch_limit_exceeded: [
      'Too many batches of the account have not ended.',
      'Wait until some have ended.',
    ],
  },
  500: {
    internal_error: [
      'The server has a defect.',
      'Report it with the `x-request-id` header, which names the entry in the log.',
    ],
  },
  502: {
    upstream_error: [
      'The backend can’t be reached, or it failed while it was answering.',
      'Try again. `millrace backends list` shows the backend’s last error.',
    ],
  },
  503: {
    model_unavailable: [
      'No backend of the model is healthy, or the server is stopping.',
      'Try again after the time in `retry-after`. Check `millrace backends list`.',
    ],
    no_backend: [
      'The model had a backend, and none is left, or the stand-in is turned off.',
      'Add a backend or deploy the model. `millrace models stand-in` lets the stand-in answer for it again.',
    ],
    deployment_unavailable: [
      'The deployment of the model is stopped, or its engine failed to start three times.',
      'The message says why. `millrace deployments logs` has the engine’s last lines. `millrace deployments start`, or a change of the engine, tries again.',
    ],
    server_is_overloaded: [
      'Every backend of the model is busy and the queue is full.',
      'Try again after the time in `retry-after`, or add a backend.',
    ],
    database_unavailable: [
      'The database does not answer.',
      'Try again shortly. Check that PostgreSQL runs and can be reached.',
    ],
  },
  504: {
    upstream_timeout: [
      'The backend did not answer in time.',
      'Try again, ask for fewer tokens, or raise the backend’s timeout.',
    ],
  },
  507: {
    disk_full: [
      'The disk of the server is full.',
      'Free some space. The APIs recover by themselves.',
    ],
  },
});

/** Lambda's format has one code for most requests that are refused as they are. */
export const cloudErrors = toErrors({
  400: {
    'global/invalid-parameters': [
      'The request is malformed, or a value is not allowed.',
      'The message names the member and says what is allowed.',
    ],
    'global/duplicate': ['The name is taken.', 'Choose another name.'],
    'global/quota-exceeded': [
      'The account has as many of these as it may have.',
      'Delete what you no longer need, or have the quota raised.',
    ],
    'instance-operations/launch/insufficient-capacity': [
      'No host has room for this type.',
      'Choose a type whose `regions_with_capacity_available` is not empty, or try again later.',
    ],
    'filesystems/filesystem-in-use': [
      'An instance uses the filesystem.',
      'Terminate the instances that mount it, wait until they are gone, then delete it.',
    ],
    'firewall-rulesets/firewall-ruleset-in-use': [
      'An instance uses the ruleset.',
      'Terminate the instances that use it, then delete it.',
    ],
  },
  401: {
    'global/invalid-api-key': [
      'The API key is missing, wrong, revoked or expired.',
      'Send it as `Authorization: Bearer <key>`, as `x-api-key`, or as the user name of HTTP Basic.',
    ],
  },
  403: {
    'global/forbidden': [
      'The key may not use this API, or the operation is not offered here.',
      'Use a key with the `cloud` scope.',
    ],
  },
  404: {
    'global/not-found': ['There is no such path or resource.', 'Check the path and the id.'],
    'global/object-does-not-exist': [
      'The instance, type, image, key, filesystem or ruleset does not exist.',
      'Check the id or the name.',
    ],
  },
  405: {
    'global/invalid-parameters': [
      'The path does not accept this method.',
      'The `allow` header lists the methods it accepts.',
    ],
  },
  408: {
    'global/invalid-parameters': [
      'The body did not arrive in time.',
      'Check the connection and send it again.',
    ],
  },
  409: {
    'global/conflict': [
      'The state of the resource does not allow this.',
      'Wait until the instance’s `actions` say that it is possible.',
    ],
  },
  415: {
    'global/invalid-parameters': [
      'The body has an encoding that is not supported.',
      'Send plain JSON.',
    ],
  },
  417: {
    'global/invalid-parameters': [
      'The value of the `expect` header is not supported.',
      'Leave the header out.',
    ],
  },
  421: {
    'global/invalid-parameters': [
      'The `host` header names a server that this is not.',
      'Use a name from `server.public_url` or `server.allowed_hosts`.',
    ],
  },
  429: {
    'global/too-many-requests': [
      'The account is over its rate of requests.',
      'Wait for the number of seconds in `retry-after`.',
    ],
  },
  500: {
    'global/internal-error': [
      'The server has a defect.',
      'Report it with the `x-request-id` header, which names the entry in the log.',
    ],
  },
  503: {
    'provider/internal-unavailable': [
      'The server is busy or stopping, or its database does not answer.',
      'Try again shortly.',
    ],
  },
  507: {
    'provider/disk-full': [
      'The disk of the server is full or almost full.',
      'Delete filesystems, or free some space.',
    ],
    'instance-operations/launch/insufficient-capacity': [
      'Only the disk of the server forbids the launch. The message says what is free and what is promised.',
      'Launch a smaller type, or free some space.',
    ],
  },
});
