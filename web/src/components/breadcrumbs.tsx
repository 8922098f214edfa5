// Where a page is: its group, the pages above it, and its title. A page renders them into the top bar.

import { createContext, useContext } from 'react';
import { createPortal } from 'react-dom';
import { Link, useLocation } from 'wouter';
import { findSection } from '../shell/navigation.ts';

/** The element of the top bar that the breadcrumbs go into; null before it is there. */
export const TrailContext = createContext<HTMLElement | null>(null);

export interface Crumb {
  name: string;
  path: string;
}

interface BreadcrumbsProps {
  title: string;
  /** The pages above this one. Default: the page of the navigation that it belongs to, if that is another one. */
  parents?: Crumb[] | undefined;
}

export function Breadcrumbs({ title, parents }: BreadcrumbsProps) {
  const trail = useContext(TrailContext);
  const [location] = useLocation();
  const section = findSection(location);
  if (trail === null) return null;
  const above = parents ?? (section === undefined || section.name === title ? [] : [section]);
  return createPortal(
    <nav aria-label="Breadcrumbs">
      <ol className="crumbs">
        {section && <li>{section.group}</li>}
        {above.map(({ name, path }) => (
          <li key={path}>
            <Link href={path}>{name}</Link>
          </li>
        ))}
        <li aria-current="page">
          <span>{title}</span>
        </li>
      </ol>
    </nav>,
    trail,
  );
}
