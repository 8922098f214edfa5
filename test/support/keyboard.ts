// Uses a page by keyboard alone, as tests of the dashboard do.

import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { until } from './until.ts';

/** More than any page has. */
export const maxStops = 250;

export const isFocused = (one: Locator): Promise<boolean> =>
  one.evaluate((element) =>
    (element as unknown as { matches(selector: string): boolean }).matches(':focus'),
  );

/** Presses Tab until the element has the focus. */
export async function reach(page: Page, target: Locator): Promise<void> {
  await target.waitFor({ state: 'attached' });
  for (let stop = 0; stop < maxStops; stop++) {
    if (await isFocused(target)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not reach ${target}`);
}

/** Reaches the element and presses Enter. */
export async function press(page: Page, target: Locator): Promise<void> {
  await reach(page, target);
  await page.keyboard.press('Enter');
}

export const waitForFocus = (name: string, target: Locator): Promise<boolean> =>
  until(`${name} has the focus`, async () => (await target.count()) === 1 && isFocused(target));
