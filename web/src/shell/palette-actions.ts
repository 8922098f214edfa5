// The actions of the command palette, as far as the user's role allows them.

import type { Icon } from '@tabler/icons-react';
import IconApi from '@tabler/icons-react/dist/esm/icons/IconApi.mjs';
import IconContrast from '@tabler/icons-react/dist/esm/icons/IconContrast.mjs';
import IconDownload from '@tabler/icons-react/dist/esm/icons/IconDownload.mjs';
import IconHelp from '@tabler/icons-react/dist/esm/icons/IconHelp.mjs';
import IconKeyboard from '@tabler/icons-react/dist/esm/icons/IconKeyboard.mjs';
import IconLogout from '@tabler/icons-react/dist/esm/icons/IconLogout.mjs';
import IconPlus from '@tabler/icons-react/dist/esm/icons/IconPlus.mjs';
import { newDeploymentPath } from '../deployments/deployments.ts';

interface ActionContext {
  canUse: boolean;
  canManage: boolean;
  navigate: (path: string) => void;
  signOut: () => void;
  toggleColorScheme: () => void;
  onShortcuts: () => void;
}

interface Action {
  id: string;
  label: string;
  icon: Icon;
  keywords?: string;
  onClick: () => void;
}

export function toActions(context: ActionContext): Action[] {
  const { canUse, canManage, navigate } = context;
  const create = (path: string, label: string, keywords = 'new create add') => ({
    id: `action ${path}`,
    label,
    icon: IconPlus,
    keywords,
    onClick: () => navigate(path),
  });
  const forMembers = [
    create('/machines/new', 'Launch machine'),
    create('/api-keys/new', 'Create API key'),
    { ...create('/models/pull', 'Pull weights', 'download model'), icon: IconDownload },
    create('/ssh-keys/new', 'Add SSH key'),
    create('/filesystems/new', 'Create filesystem'),
    create('/firewall/new', 'Create firewall ruleset'),
  ];
  const forOwners = [
    create('/models/add-backend', 'Add backend'),
    create(newDeploymentPath, 'Deploy model', 'new create add deployment'),
    create('/hosts/new', 'Add host'),
  ];
  return [
    ...(canUse ? forMembers : []),
    ...(canManage ? forOwners : []),
    {
      id: 'theme',
      label: 'Switch between light and dark',
      icon: IconContrast,
      keywords: 'theme color scheme toggle',
      onClick: context.toggleColorScheme,
    },
    { id: 'docs', label: 'API reference', icon: IconApi, onClick: () => open('/docs') },
    { id: 'help', label: 'Help', icon: IconHelp, keywords: 'docs guide', onClick: openHelp },
    {
      id: 'shortcuts',
      label: 'Keyboard shortcuts',
      icon: IconKeyboard,
      onClick: context.onShortcuts,
    },
    {
      id: 'sign-out',
      label: 'Sign out',
      icon: IconLogout,
      keywords: 'log out logout',
      onClick: context.signOut,
    },
  ];
}

const open = (path: string) => window.location.assign(path);
const openHelp = () => open('/help');
