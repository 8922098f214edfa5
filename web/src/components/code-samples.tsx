// The same call in three languages, with a copy button. The chosen language is remembered.

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
        <Tabs.Panel key={name} value={name} className="sample">
          <div className="sample-copy">
            <CopyButton value={samples[name]} label="Copy the code" />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, also by keyboard */}
          <pre className="code-block" tabIndex={0}>
            <code>{samples[name]}</code>
          </pre>
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
