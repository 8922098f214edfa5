// Code with a copy button, alone or as the same call in three languages. The language that the user selects
// is remembered in this browser.

import { Tabs } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { type Language, languages } from '../code-samples/chat.ts';
import { CopyButton } from './copy-button.tsx';

export function CodeSamples({ samples }: { samples: Record<Language, string> }) {
  const [language, setLanguage] = useLocalStorage<Language>({
    key: 'millrace.language',
    defaultValue: 'curl',
    getInitialValueInEffect: false,
  });
  const shown = languages.includes(language) ? language : 'curl';
  return (
    <Tabs value={shown} onChange={(value) => value && setLanguage(value as Language)}>
      <Tabs.List mb="sm">
        {languages.map((name) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {languages.map((name) => (
        <Tabs.Panel key={name} value={name}>
          <CodeBlock code={samples[name]} copyLabel="Copy code" />
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
