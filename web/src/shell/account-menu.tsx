// The menus at the right of the top bar: color scheme, and the signed-in user.

import { ActionIcon, Avatar, Box, Menu, Text, useMantineColorScheme } from '@mantine/core';
import IconDeviceDesktop from '@tabler/icons-react/dist/esm/icons/IconDeviceDesktop.mjs';
import IconLogout from '@tabler/icons-react/dist/esm/icons/IconLogout.mjs';
import IconMoon from '@tabler/icons-react/dist/esm/icons/IconMoon.mjs';
import IconShieldLock from '@tabler/icons-react/dist/esm/icons/IconShieldLock.mjs';
import IconSun from '@tabler/icons-react/dist/esm/icons/IconSun.mjs';
import { Link } from 'wouter';
import { useMe, useSignOut } from '../current-user.ts';

const schemes = [
  { value: 'auto', name: 'System', icon: IconDeviceDesktop },
  { value: 'light', name: 'Light', icon: IconSun },
  { value: 'dark', name: 'Dark', icon: IconMoon },
] as const;

export function ColorSchemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { icon: Current } = schemes.find(({ value }) => value === colorScheme) ?? schemes[0];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Color scheme">
          <Current size={18} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ value, name, icon: Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={16} stroke={1.6} aria-hidden />}
            onClick={() => setColorScheme(value)}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

export function AccountMenu() {
  const { email, role } = useMe();
  const signOut = useSignOut();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" radius="xl" aria-label="Account menu">
          <Avatar size={28} radius="xl" classNames={{ placeholder: 'avatar' }} alt="">
            {email.slice(0, 1).toUpperCase()}
          </Avatar>
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Box px="sm" py={6}>
          <Text size="sm" fw={500} className="breakable">
            {email}
          </Text>
          <Text size="xs" c="dimmed" tt="capitalize">
            {role}
          </Text>
        </Box>
        <Menu.Divider />
        <Menu.Item
          component={Link}
          href="/team"
          leftSection={<IconShieldLock size={16} stroke={1.6} aria-hidden />}
        >
          Password and sessions
        </Menu.Item>
        <Menu.Item
          leftSection={<IconLogout size={16} stroke={1.6} aria-hidden />}
          onClick={signOut}
        >
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
