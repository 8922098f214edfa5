// The routes. Users who are not signed in get the sign-in form in place of a page, so signing in takes them to
// the page they asked for.

import { Center, Skeleton, Stack } from '@mantine/core';
import { type ComponentType, lazy } from 'react';
import { Route, Switch } from 'wouter';
import { ErrorNotice } from './components/error-notice.tsx';
import { MeContext, useMeQuery } from './current-user.ts';
import { newDeploymentPath } from './deployments/deployments.ts';
import { NotFound } from './not-found.tsx';
import { Shell } from './shell/shell.tsx';
import { Join } from './sign-in/join.tsx';
import { Reset } from './sign-in/reset.tsx';
import { SignIn } from './sign-in/sign-in.tsx';

/** The code of the pages, by the first part of their path. */
const pages = {
  '': () => import('./home/home.tsx'),
  'api-keys': () => import('./api-keys/api-keys.tsx'),
  batches: () => import('./batches/batches.tsx'),
  playground: () => import('./playground/playground.tsx'),
  deployments: () => import('./deployments/deployments.tsx'),
  filesystems: () => import('./filesystems/filesystems.tsx'),
  firewall: () => import('./firewall/firewall.tsx'),
  hosts: () => import('./hosts/hosts.tsx'),
  machines: () => import('./machines/machines.tsx'),
  models: () => import('./models/models.tsx'),
  'ssh-keys': () => import('./ssh-keys/ssh-keys.tsx'),
  team: () => import('./team/team.tsx'),
  usage: () => import('./usage/usage.tsx'),
  'audit-log': () => import('./audit-log/audit-log.tsx'),
};

/** The code of the pages below those. */
const details = [
  [/^\/api-keys\/[0-9a-f]{32}/, () => import('./api-keys/api-key-page.tsx')],
  [/^\/deployments\/[^-/]/, () => import('./deployments/deployment-page.tsx')],
  [/^\/machines\/new/, () => import('./machines/launch-page.tsx')],
  [/^\/machines\/[0-9a-f]{32}/, () => import('./machines/machine-page.tsx')],
  [/^\/models\/(?!pull|add-backend)./, () => import('./models/model-page.tsx')],
  [/^\/usage\/requests\/[0-9a-f]{32}/, () => import('./usage/request-page.tsx')],
] as const;

/** Loads the code of a page while the server is still asked who is signed in. */
export function preloadPage(path: string): void {
  const [, first = ''] = path.split('/');
  const [, loadDetail] = details.find(([pattern]) => pattern.test(path)) ?? [];
  const load = loadDetail ?? (first in pages ? pages[first as keyof typeof pages] : undefined);
  // What fails here fails again when the page is shown, and is reported then.
  load?.().catch(() => {});
}

const retryMs = 500;

/** Its code is loaded when the page is shown. The server may just have closed an idle connection, so it is asked twice. */
function lazyPage<Props>(load: () => Promise<{ default: ComponentType<Props> }>) {
  const loadAgain = () => new Promise((done) => setTimeout(done, retryMs)).then(load);
  return lazy(() => load().catch(loadAgain));
}

const Home = lazyPage(pages['']);
const ApiKeys = lazyPage(pages['api-keys']);
const Batches = lazyPage(pages.batches);
const Playground = lazyPage(pages.playground);
const Deployments = lazyPage(pages.deployments);
const DeploymentPage = lazyPage(() => import('./deployments/deployment-page.tsx'));
const Filesystems = lazyPage(pages.filesystems);
const Firewall = lazyPage(pages.firewall);
const Hosts = lazyPage(pages.hosts);
const LaunchPage = lazyPage(() => import('./machines/launch-page.tsx'));
const MachinePage = lazyPage(() => import('./machines/machine-page.tsx'));
const Machines = lazyPage(pages.machines);
const Models = lazyPage(pages.models);
const SshKeys = lazyPage(pages['ssh-keys']);
const Team = lazyPage(pages.team);
const Usage = lazyPage(pages.usage);
const ApiKeyPage = lazyPage(() => import('./api-keys/api-key-page.tsx'));
const ModelPage = lazyPage(() => import('./models/model-page.tsx'));
const RequestPage = lazyPage(() => import('./usage/request-page.tsx'));
const AuditLog = lazyPage(pages['audit-log']);

export function App() {
  return (
    <Switch>
      <Route path="/join/:token">{({ token }) => <Join key={token} token={token} />}</Route>
      <Route path="/reset/:token">{({ token }) => <Reset key={token} token={token} />}</Route>
      <Route>
        <SignedIn />
      </Route>
    </Switch>
  );
}

function SignedIn() {
  const me = useMeQuery();
  if (me.isPending) return <Loading />;
  // A failed refetch must not take away the page, and what the user has entered there.
  if (me.data === undefined) {
    return (
      <Center mih="60vh" p="md">
        <ErrorNotice error={me.error} onRetry={() => me.refetch()} />
      </Center>
    );
  }
  if (me.data === null) return <SignIn />;
  return (
    <MeContext value={me.data}>
      <Shell>
        <Switch>
          <Route path="/" component={Home} />
          <Route path="/api-keys" component={ApiKeys} />
          <Route path="/api-keys/new" component={ApiKeys} />
          <Route path="/api-keys/limits" component={ApiKeys} />
          <Route path="/api-keys/edit/:id" component={ApiKeys} />
          <Route path="/api-keys/:id">{({ id }) => <ApiKeyPage key={id} id={id} />}</Route>
          <Route path="/batches" component={Batches} />
          <Route path="/playground" component={Playground} />
          <Route path="/playground/*" component={Playground} />
          <Route path="/models" component={Models} />
          <Route path="/models/pull" component={Models} />
          <Route path="/models/add-backend" component={Models} />
          <Route path="/models/:id">{({ id }) => <ModelPage key={id} id={id} />}</Route>
          <Route path="/deployments" component={Deployments} />
          <Route path={newDeploymentPath} component={Deployments} />
          <Route path="/deployments/:name">
            {({ name }) => <DeploymentPage key={name} name={name} />}
          </Route>
          <Route path="/machines" component={Machines} />
          <Route path="/machines/new" component={LaunchPage} />
          <Route path="/machines/:id/:tab?" component={MachinePage} />
          <Route path="/ssh-keys" component={SshKeys} />
          <Route path="/ssh-keys/new" component={SshKeys} />
          <Route path="/filesystems" component={Filesystems} />
          <Route path="/filesystems/new" component={Filesystems} />
          <Route path="/firewall" component={Firewall} />
          <Route path="/firewall/new" component={Firewall} />
          <Route path="/hosts" component={Hosts} />
          <Route path="/hosts/new" component={Hosts} />
          <Route path="/usage" component={Usage} />
          <Route path="/usage/requests" component={Usage} />
          <Route path="/usage/requests/:id">{({ id }) => <RequestPage key={id} id={id} />}</Route>
          <Route path="/team" component={Team} />
          <Route path="/audit-log" component={AuditLog} />
          <Route path="/audit-log/:view" component={AuditLog} />
          <Route component={NotFound} />
        </Switch>
      </Shell>
    </MeContext>
  );
}

const Loading = () => (
  <Stack p="xl" maw={640} aria-busy="true">
    <Skeleton h={32} w={200} />
    <Skeleton h={120} />
  </Stack>
);
