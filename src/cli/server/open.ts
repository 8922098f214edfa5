// millrace open: opens a page of the dashboard in the browser, or prints its address where there is none.

import { spawn } from 'node:child_process';
import { Argument, Command } from 'commander';
import { loadCredentials } from '#cli/credentials.ts';
import { printJson, report } from '#cli/output.ts';
import { hasDisplay } from '#config/environment.ts';

/** Each page by the word for it, which is that of the CLI where it has one. */
const pages = {
  home: '/',
  playground: '/#/playground',
  models: '/#/models',
  deployments: '/#/deployments',
  batches: '/#/batches',
  machines: '/#/machines',
  launch: '/#/machines/new',
  'ssh-keys': '/#/ssh-keys',
  filesystems: '/#/filesystems',
  firewall: '/#/firewall',
  hosts: '/#/hosts',
  keys: '/#/api-keys',
  usage: '/#/usage',
  requests: '/#/usage/requests',
  team: '/#/team',
  audit: '/#/audit-log',
  docs: '/docs',
  help: '/help',
} as const;

/** Programs that open addresses end in a moment. One that runs on has become the browser. */
const startMs = 3_000;

export function openCommand(): Command {
  const page = new Argument('[page]', 'Page').choices(Object.keys(pages)).default('home');
  return new Command('open')
    .description('Open a page of the dashboard in the browser, or print its address')
    .addArgument(page)
    .option('--json', 'Print the address as JSON, and open nothing')
    .addHelpText('after', '\nWithout a browser or a terminal it prints the address alone.')
    .action(openPage);
}

async function openPage(page: keyof typeof pages, { json }: { json?: true }): Promise<void> {
  const url = `${loadCredentials().url}${pages[page]}`;
  if (json) return printJson({ url });
  const isOpen = process.stdout.isTTY && hasDisplay() && (await openBrowser(url));
  report({ url }, isOpen ? `Opened ${url}` : url, json);
}

/** Resolves to false if there is no program for it, or it fails. */
function openBrowser(url: string): Promise<boolean> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  return new Promise((resolve) => {
    const child = spawn(program, [url], { stdio: 'ignore', detached: true });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
    setTimeout(() => resolve(true), startMs);
  });
}
