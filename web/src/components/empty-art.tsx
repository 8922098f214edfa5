// Line drawings for empty lists, in the color of the text with one accent.

import type { ReactNode } from 'react';

export type Drawing =
  | 'chip'
  | 'disk'
  | 'filter'
  | 'key'
  | 'list'
  | 'machine'
  | 'people'
  | 'pulse'
  | 'rack'
  | 'shield';

export const EmptyArt = ({ of }: { of: Drawing }) => (
  <svg
    className="empty-art"
    viewBox="0 0 112 88"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.6"
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
  >
    {/* The water that flows below everything here. */}
    <g className="accent" stroke="currentColor">
      <path d="M8 76c6-4 10-4 16 0s10 4 16 0 10-4 16 0 10 4 16 0 10-4 16 0 10 4 16 0" />
      <path d="M24 82c6-4 10-4 16 0s10 4 16 0 10-4 16 0 10 4 16 0" opacity="0.45" />
    </g>
    {drawings[of]}
  </svg>
);

const Accent = ({ children }: { children: ReactNode }) => (
  <g className="accent" stroke="currentColor">
    {children}
  </g>
);

const drawings: Record<Drawing, ReactNode> = {
  machine: (
    <>
      <rect x="26" y="12" width="60" height="40" rx="5" />
      <path d="M46 64h20M56 52v12M26 43h60" />
      <Accent>
        <path d="m36 22 7 6-7 6M47 35h10" />
      </Accent>
    </>
  ),
  rack: (
    <>
      <rect x="30" y="8" width="52" height="16" rx="3" />
      <rect x="30" y="28" width="52" height="16" rx="3" />
      <rect x="30" y="48" width="52" height="16" rx="3" />
      <path d="M54 16h20M54 36h20M54 56h20" />
      <Accent>
        <path d="M38 16h4M38 36h4M38 56h4" />
      </Accent>
    </>
  ),
  key: (
    <>
      <circle cx="40" cy="38" r="15" />
      <circle cx="36" cy="38" r="4" />
      <path d="M55 38h36v10M81 38v8" />
      <Accent>
        <path d="M64 20l2-6M74 23l5-4M58 18l-1-6" />
      </Accent>
    </>
  ),
  disk: (
    <>
      <ellipse cx="56" cy="16" rx="26" ry="8" />
      <path d="M30 16v40c0 4.5 11.6 8 26 8s26-3.5 26-8V16" />
      <Accent>
        <path d="M30 36c0 4.5 11.6 8 26 8s26-3.5 26-8" />
      </Accent>
    </>
  ),
  shield: (
    <>
      <path d="M56 6 80 15v19c0 15-10 25-24 31-14-6-24-16-24-31V15Z" />
      <Accent>
        <path d="m46 35 7 7 13-14" />
      </Accent>
    </>
  ),
  chip: (
    <>
      <rect x="36" y="16" width="40" height="40" rx="5" />
      <path d="M46 8v8M56 8v8M66 8v8M46 56v8M56 56v8M66 56v8M28 26h8M28 36h8M28 46h8M76 26h8M76 36h8M76 46h8" />
      <Accent>
        <path d="M56 27c1 6 3 8 9 9-6 1-8 3-9 9-1-6-3-8-9-9 6-1 8-3 9-9Z" />
      </Accent>
    </>
  ),
  pulse: (
    <>
      <path d="M22 10v50c0 2 1 4 4 4h66" />
      <path d="M38 54v-8M52 54V40M66 54V44M80 54V34" opacity="0.5" />
      <Accent>
        <path d="M32 34h12l6-14 9 26 7-17 4 5h18" />
      </Accent>
    </>
  ),
  people: (
    <>
      <circle cx="46" cy="24" r="11" />
      <path d="M24 62c1-14 10-21 22-21s21 7 22 21" />
      <Accent>
        <path d="M82 26v16M74 34h16" />
      </Accent>
    </>
  ),
  filter: (
    <>
      <circle cx="52" cy="32" r="20" />
      <path d="m67 47 17 16" />
      <Accent>
        <path d="M45 25l14 14M59 25 45 39" />
      </Accent>
    </>
  ),
  list: (
    <>
      <rect x="28" y="10" width="56" height="52" rx="5" />
      <path d="M48 24h26M48 36h26M48 48h16" />
      <Accent>
        <path d="M37 24h3M37 36h3M37 48h3" />
      </Accent>
    </>
  ),
};
