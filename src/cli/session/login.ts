// millrace login: sign in, or join by the link that the server printed.

import { Command } from 'commander';
import { explain, send } from '#cli/client.ts';
import { loadCredentials, saveSession } from '#cli/credentials.ts';
import { CliError } from '#cli/output.ts';
import { withQuestions } from '#cli/questions.ts';

interface Options {
  url?: string;
  email?: string;
  link?: string;
}

export function loginCommand(): Command {
  return new Command('login')
    .description('sign in with e-mail and password, or join by an invitation or set-up link')
    .option('--url <url>', 'the server, e.g. http://127.0.0.1:8080')
    .option('--email <address>', 'asked for when not given')
    .option('--link <link>', 'an invitation or the set-up link from the server’s start')
    .addHelpText(
      'after',
      '\nWhat is asked for is read from standard input, line by line, when that is a pipe.',
    )
    .action(login);
}

async function login(options: Options): Promise<void> {
  const link = options.link === undefined ? null : parseLink(options.link);
  const url = (link?.url ?? options.url ?? loadCredentials().url).replace(/\/+$/, '');
  const { email, password } = await withQuestions(async ({ ask, askSecret }) => ({
    email: options.email ?? (await ask('E-mail: ')),
    password: await askSecret(link === null ? 'Password: ' : 'Choose a password: '),
  }));
  const response =
    link === null
      ? await send(url, 'POST', '/dashboard/api/login', {}, { email, password })
      : await send(url, 'POST', '/dashboard/api/join', {}, { token: link.token, email, password });
  const text = await response.text();
  if (!response.ok) throw new CliError(explain(response, text));
  const cookie = response.headers.getSetCookie().find((one) => one.startsWith('millrace_session='));
  const session = cookie?.split(';')[0]?.split('=')[1];
  if (session === undefined) throw new CliError('The server did not start a session.');
  saveSession(url, session);
  console.log(`Signed in to ${url} as ${email}.`);
}

function parseLink(link: string): { url: string; token: string } {
  const [, url, token] = /^(https?:\/\/[^#]+?)\/*#\/join\/([A-Za-z0-9]+)$/.exec(link) ?? [];
  if (url === undefined || token === undefined) {
    throw new CliError('This is not a Millrace link. It looks like http://host:8080/#/join/....');
  }
  return { url, token };
}
