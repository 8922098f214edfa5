// The component library's theme: colors with WCAG AA contrast in both color schemes, which the library's
// default for dimmed text lacks, and properties that all components of a kind share.

import { type CSSVariablesResolver, createTheme } from '@mantine/core';

const withCloseLabel = { closeButtonProps: { 'aria-label': 'Close' } };
/** Most fields are required, so required fields carry no asterisk. */
const field = { defaultProps: { withAsterisk: false, autoComplete: 'off' } };

export const theme = createTheme({
  primaryColor: 'cyan',
  primaryShade: 9,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '600' },
  defaultRadius: 'md',
  respectReducedMotion: true,
  components: {
    Modal: {
      defaultProps: { centered: true, ...withCloseLabel },
      classNames: { title: 'dialog-title' },
    },
    Drawer: { defaultProps: withCloseLabel, classNames: { title: 'dialog-title' } },
    Notification: { defaultProps: withCloseLabel },
    PasswordInput: field,
    Textarea: field,
    TextInput: field,
    Tooltip: { defaultProps: { openDelay: 300 } },
  },
});

export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#59616a',
    '--mantine-color-placeholder': '#6a727a',
    '--mantine-color-error': '#c92a2a',
    '--mantine-color-anchor': '#0b7285',
  },
  dark: {
    '--mantine-color-dimmed': '#b3b6ba',
    '--mantine-color-placeholder': '#9a9da1',
    '--mantine-color-error': '#ff8787',
    '--mantine-color-anchor': '#66d9e8',
  },
});
