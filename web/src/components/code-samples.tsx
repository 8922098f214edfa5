// Code with a copy button, alone or the same in several languages or for several programs. What the user selects is
// remembered in this browser.

import { Tabs } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { CopyButton } from './copy-button.tsx';

/** `samples` is code by the name of its language or program. */
export function CodeSamples({ samples }: { samples: Record<string, string> }) {
  const names = Object.keys(samples);
  const [chosen, setChosen] = useLocalStorage({
    key: 'millrace.language',
    defaultValue: '',
    getInitialValueInEffect: false,
  });
  const shown = names.includes(chosen) ? chosen : (names[0] ?? '');
  return (
    <Tabs value={shown} onChange={(value) => value && setChosen(value)}>
      <Tabs.List mb="sm">
        {names.map((name) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {names.map((name) => (
        <Tabs.Panel key={name} value={name}>
          <CodeBlock code={samples[name] ?? ''} copyLabel="Copy code" />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

export const CodeBlock = ({ code, copyLabel }: { code: string; copyLabel: string }) => (
  <div className="sample">
    <div className="sample-copy">
      <CopyButton value={code} label={copyLabel} />
    </div>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, which the keyboard must reach */}
    <pre className="code-block" tabIndex={0}>
      <code>{code}</code>
    </pre>
  </div>
);
