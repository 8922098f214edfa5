// The routes. Users who are not signed in get the sign-in form in place of a page, so signing in takes them to
// the page they asked for.

import { Center, Skeleton, Stack } from '@mantine/core';
import { lazy } from 'react';
import { Route, Switch } from 'wouter';
import { ErrorNotice } from './components/error-notice.tsx';
import { MeContext, useMeQuery } from './current-user.ts';
import { newDeploymentPath } from './deployments/deployments.ts';
import { NotFound } from './not-found.tsx';
import { Shell } from './shell/shell.tsx';
import { Join } from './sign-in/join.tsx';
import { Reset } from './sign-in/reset.tsx';
import { SignIn } from './sign-in/sign-in.tsx';

const Home = lazy(() => import('./home/home.tsx'));
const ApiKeys = lazy(() => import('./api-keys/api-keys.tsx'));
const Batches = lazy(() => import('./batches/batches.tsx'));
const Playground = lazy(() => import('./playground/playground.tsx'));
const Deployments = lazy(() => import('./deployments/deployments.tsx'));
const DeploymentPage = lazy(() => import('./deployments/deployment-page.tsx'));
const Filesystems = lazy(() => import('./filesystems/filesystems.tsx'));
const Firewall = lazy(() => import('./firewall/firewall.tsx'));
const Hosts = lazy(() => import('./hosts/hosts.tsx'));
const LaunchPage = lazy(() => import('./machines/launch-page.tsx'));
const MachinePage = lazy(() => import('./machines/machine-page.tsx'));
const Machines = lazy(() => import('./machines/machines.tsx'));
const Models = lazy(() => import('./models/models.tsx'));
const SshKeys = lazy(() => import('./ssh-keys/ssh-keys.tsx'));
const Team = lazy(() => import('./team/team.tsx'));
const Usage = lazy(() => import('./usage/usage.tsx'));
const ApiKeyPage = lazy(() => import('./api-keys/api-key-page.tsx'));
const ModelPage = lazy(() => import('./models/model-page.tsx'));
const RequestPage = lazy(() => import('./usage/request-page.tsx'));
const AuditLog = lazy(() => import('./audit-log/audit-log.tsx'));

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
