// Types for icons imported one file at a time. Importing the package's index would make the bundler read six
// thousand icons, which takes seconds and hundreds of megabytes on the first start.

declare module '@tabler/icons-react/dist/esm/icons/*.mjs' {
  import type { Icon } from '@tabler/icons-react';

  const icon: Icon;
  export default icon;
}
