// The pool alone: with all else that undici has, such as fetch and WebSockets, a server takes 7 MB more.

declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici';

  export default Pool;
}
