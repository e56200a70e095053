/**
 * patience is how long, in milliseconds, the tests wait for anything: what takes a second on an idle machine takes minutes
 * on a disturbed one. Only a test that fails waits so long.
 */
export const patience = 300_000;
