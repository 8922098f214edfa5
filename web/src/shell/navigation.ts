// The pages in the navigation, in their groups. The sidebar, the breadcrumbs, the command palette and the keyboard
// shortcuts all read this list.

import type { Icon } from '@tabler/icons-react';
import IconBuildingWarehouse from '@tabler/icons-react/dist/esm/icons/IconBuildingWarehouse.mjs';
import IconChartBar from '@tabler/icons-react/dist/esm/icons/IconChartBar.mjs';
import IconDatabase from '@tabler/icons-react/dist/esm/icons/IconDatabase.mjs';
import IconHistory from '@tabler/icons-react/dist/esm/icons/IconHistory.mjs';
import IconHome from '@tabler/icons-react/dist/esm/icons/IconHome.mjs';
import IconKey from '@tabler/icons-react/dist/esm/icons/IconKey.mjs';
import IconMessage from '@tabler/icons-react/dist/esm/icons/IconMessage.mjs';
import IconRocket from '@tabler/icons-react/dist/esm/icons/IconRocket.mjs';
import IconServer2 from '@tabler/icons-react/dist/esm/icons/IconServer2.mjs';
import IconShield from '@tabler/icons-react/dist/esm/icons/IconShield.mjs';
import IconSparkles from '@tabler/icons-react/dist/esm/icons/IconSparkles.mjs';
import IconStack2 from '@tabler/icons-react/dist/esm/icons/IconStack2.mjs';
import IconTerminal2 from '@tabler/icons-react/dist/esm/icons/IconTerminal2.mjs';
import IconUsers from '@tabler/icons-react/dist/esm/icons/IconUsers.mjs';

export interface NavigationItem {
  path: string;
  name: string;
  icon: Icon;
  /** Opens the page when it is pressed after `g`. */
  key: string;
  /** True if viewers don't see it. */
  needsUse?: boolean;
}

export const navigation: { group: string; items: NavigationItem[] }[] = [
  {
    group: 'Build',
    items: [
      { path: '/', name: 'Home', icon: IconHome, key: 'h' },
      { path: '/playground', name: 'Playground', icon: IconMessage, key: 'p', needsUse: true },
      { path: '/models', name: 'Models', icon: IconSparkles, key: 'o' },
      { path: '/deployments', name: 'Deployments', icon: IconRocket, key: 'd' },
      { path: '/api-keys', name: 'API keys', icon: IconKey, key: 'k' },
      { path: '/batches', name: 'Batches', icon: IconStack2, key: 'b' },
      { path: '/usage', name: 'Usage', icon: IconChartBar, key: 'u' },
    ],
  },
  {
    group: 'Compute',
    items: [
      { path: '/machines', name: 'Machines', icon: IconServer2, key: 'm' },
      { path: '/ssh-keys', name: 'SSH keys', icon: IconTerminal2, key: 's' },
      { path: '/filesystems', name: 'Filesystems', icon: IconDatabase, key: 'f' },
      { path: '/firewall', name: 'Firewall', icon: IconShield, key: 'w' },
    ],
  },
  {
    group: 'Admin',
    items: [
      { path: '/hosts', name: 'Hosts', icon: IconBuildingWarehouse, key: 'n' },
      { path: '/team', name: 'Team', icon: IconUsers, key: 't' },
      { path: '/audit-log', name: 'Audit log', icon: IconHistory, key: 'a' },
    ],
  },
];

/** The navigation of a user, in groups that are never empty. */
export const toNavigation = (canUse: boolean) =>
  navigation.map(({ group, items }) => ({
    group,
    items: items.filter(({ needsUse }) => canUse || !needsUse),
  }));

/** The first part of a page's path, e.g. `/machines` of `/machines/new`. */
export const toSection = (location: string) => `/${location.split('/')[1] ?? ''}`;

export const findSection = (location: string) => {
  const section = toSection(location);
  for (const { group, items } of navigation) {
    const item = items.find(({ path }) => path === section);
    if (item !== undefined) return { group, ...item };
  }
  return undefined;
};
