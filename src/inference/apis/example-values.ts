// Values that the examples of the API reference share.

export const model = 'llama3.1-8b-instruct';
export const messages = [{ role: 'user', content: 'What is a millrace?' }];
export const text = 'A channel that carries water to a mill wheel.';
export const id = '0920582c7ff041399e34823a0be62549';
export const created = 1_794_873_600;
export const usage = { prompt_tokens: 13, completion_tokens: 12, total_tokens: 25 };
