// Starts the dashboard.

import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './style.css';
import { ApiError } from './api.ts';
import { App, preloadPage } from './app.tsx';
import { useHashPath } from './browser/hash-path.ts';
import { nonce } from './browser/nonce.ts';
import { endSession } from './current-user.ts';
import { cssVariables, theme } from './theme.ts';

// The library that locks scrolling behind dialogs reads the nonce from this global.
Object.assign(globalThis, { __webpack_nonce__: nonce });

/** Shows the sign-in form in place of the page when the session has ended. */
function onError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) endSession(client);
}

/** This server may be reachable without the internet, and if it isn't, an error says so at once. */
const networkMode = 'always';

const client = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    mutations: { networkMode },
    queries: {
      staleTime: 5_000,
      // Only while the page is visible. What changes faster has an interval or a stream of its own.
      refetchInterval: 10_000,
      networkMode,
      retry: (count, error) =>
        count < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
    },
  },
});

preloadPage(location.hash.slice(1).split('?', 1)[0] ?? '');

createRoot(document.getElementById('root') as HTMLElement).render(
  <MantineProvider
    theme={theme}
    cssVariablesResolver={cssVariables}
    defaultColorScheme="auto"
    getStyleNonce={() => nonce}
  >
    <QueryClientProvider client={client}>
      <Router hook={useHashPath}>
        <App />
      </Router>
      <Notifications position="bottom-right" autoClose={4000} />
    </QueryClientProvider>
  </MantineProvider>,
);
