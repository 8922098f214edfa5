// The design on top of the component library: type scale, brand color, dark palette and surfaces. Every text color
// has a contrast of at least 4.5:1 on every surface in its color scheme. Pages use the variables set here, no colors of
// their own.

import {
  type CSSVariablesResolver,
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  type VariantColorsResolver,
} from '@mantine/core';

const withCloseLabel = { closeButtonProps: { 'aria-label': 'Close' } };
/** Most fields are required, so required fields carry no asterisk. */
const field = { defaultProps: { withAsterisk: false, autoComplete: 'off' } };
const withDialogTitle = { title: 'dialog-title' };

/** The color of the water that drives the mill. */
const brand: MantineColorsTuple = [
  '#e4f8fa',
  '#c5eff3',
  '#93e1e9',
  '#5fd0dc',
  '#3bc0ce',
  '#1aa5b5',
  '#0f8c9b',
  '#0a7382',
  '#095f6b',
  '#0a4852',
];

/** The library's own red has a contrast of 3.9:1 under white text. */
const red: MantineColorsTuple = [
  '#fde6e6',
  '#fbcfcf',
  '#f7a8a8',
  '#f38e8e',
  '#f07f7f',
  '#e05a5a',
  '#d13a3e',
  '#c2252b',
  '#a81e24',
  '#8c171c',
];

/** From text (0) over borders (4) and raised surfaces (6) to the page (8). */
const dark: MantineColorsTuple = [
  '#e4ebee',
  '#c2cdd2',
  '#9dabb2',
  '#82919a',
  '#2e393f',
  '#222b30',
  '#181f23',
  '#12181b',
  '#0b0f11',
  '#07090a',
];

/** Filled elements are dark with light text in the light scheme, and the other way round in the dark one. */
const variantColorResolver: VariantColorsResolver = (input) => {
  const colors = defaultVariantColorsResolver(input);
  return input.variant === 'filled' ? { ...colors, color: 'var(--on-filled)' } : colors;
};

export const theme = createTheme({
  colors: { brand, dark, red },
  primaryColor: 'brand',
  primaryShade: { light: 7, dark: 4 },
  black: '#0f181c',
  variantColorResolver,
  fontFamily: '"Geist Variable", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: '"Geist Mono Variable", ui-monospace, SFMono-Regular, Menlo, monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '1.75rem', lineHeight: '1.2' },
      h2: { fontSize: '1.375rem', lineHeight: '1.25' },
      h3: { fontSize: '1.125rem', lineHeight: '1.35' },
      h4: { fontSize: '0.9375rem', lineHeight: '1.4' },
    },
  },
  radius: { xs: '4px', sm: '6px', md: '8px', lg: '12px', xl: '16px' },
  defaultRadius: 'md',
  respectReducedMotion: true,
  components: {
    Checkbox: { defaultProps: { iconColor: 'var(--on-filled)' } },
    Radio: { defaultProps: { iconColor: 'var(--on-filled)' } },
    Modal: { defaultProps: { centered: true, ...withCloseLabel }, classNames: withDialogTitle },
    Drawer: { defaultProps: withCloseLabel, classNames: withDialogTitle },
    // A header outside of the page's landmarks would be a second banner.
    ModalHeader: { defaultProps: { component: 'div' } },
    DrawerHeader: { defaultProps: { component: 'div' } },
    Menu: { defaultProps: { radius: 'md', shadow: 'md' } },
    Notification: { defaultProps: withCloseLabel },
    PasswordInput: field,
    Progress: { defaultProps: { radius: 'xl' } },
    Textarea: field,
    TextInput: field,
    Tooltip: { defaultProps: { openDelay: 300, fz: 'xs' } },
  },
});

/** The surfaces are layered: page, then card, then what floats above it, each lighter than the one below. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-body': '#f6f8f9',
    '--mantine-color-default-border': '#d5dce0',
    '--mantine-color-dimmed': '#55626a',
    '--mantine-color-placeholder': '#66737b',
    '--mantine-color-error': '#c2252b',
    '--mantine-color-anchor': '#0a6a78',
    '--surface-nav': '#eef2f3',
    '--surface-card': '#ffffff',
    '--surface-sunken': '#f3f6f7',
    '--surface-hover': '#eef3f4',
    '--surface-raised': '#ffffff',
    '--line': '#e2e8ea',
    '--on-filled': '#ffffff',
    '--shadow-card': '0 1px 2px rgb(15 24 28 / 0.05)',
    '--tone-good': '#15703a',
    '--tone-good-soft': '#e0f4e6',
    '--tone-busy': '#1a5fb0',
    '--tone-busy-soft': '#e3eefb',
    '--tone-warning': '#8f4d00',
    '--tone-warning-soft': '#fdf0d8',
    '--tone-bad': '#b3202a',
    '--tone-bad-soft': '#fde6e6',
    '--tone-off': '#55626a',
    '--tone-off-soft': '#e9edef',
  },
  dark: {
    '--mantine-color-body': '#0b0f11',
    '--mantine-color-default-border': '#2e393f',
    '--mantine-color-default-hover': '#222b30',
    '--mantine-color-dimmed': '#9dabb2',
    '--mantine-color-placeholder': '#84939b',
    '--mantine-color-error': '#ff8a8a',
    '--mantine-color-anchor': '#5fd0dc',
    '--surface-nav': '#080b0d',
    '--surface-card': '#12181b',
    '--surface-sunken': '#0d1214',
    '--surface-hover': '#192124',
    '--surface-raised': '#181f23',
    '--line': '#212a2f',
    '--on-filled': '#04181c',
    '--shadow-card': 'inset 0 1px 0 rgb(255 255 255 / 0.03)',
    '--tone-good': '#5fd68c',
    '--tone-good-soft': '#11301d',
    '--tone-busy': '#7ab8ff',
    '--tone-busy-soft': '#122a45',
    '--tone-warning': '#f5bd4f',
    '--tone-warning-soft': '#362609',
    '--tone-bad': '#ff8a8a',
    '--tone-bad-soft': '#401719',
    '--tone-off': '#a3b0b7',
    '--tone-off-soft': '#222b30',
  },
});
