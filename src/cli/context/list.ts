// millrace context list. Tokens and keys are never printed.

import { Command } from 'commander';
import { loadContexts, loadCredentials } from '#cli/credentials.ts';
import { toTable } from '#cli/output.ts';
import { addView } from '#cli/view.ts';

export const listCommand = (): Command =>
  addView(new Command('list').description('List contexts; * marks the one in use'), async () => {
    const { all } = loadContexts();
    const { context: used } = loadCredentials();
    const data = Object.entries(all).map(([name, { url, session, apiKey }]) => ({
      name,
      url,
      current: name === used,
      signed_in: session !== null,
      has_api_key: apiKey !== null,
    }));
    const rows = data.map(({ name, url, current, signed_in, has_api_key }) => [
      current ? '*' : '',
      name,
      url,
      [...(signed_in ? ['sign-in'] : []), ...(has_api_key ? ['API key'] : [])].join(', ') || '-',
    ]);
    return { data, text: toTable('contexts', ['', 'NAME', 'SERVER', 'ACCESS'], rows) };
  });
