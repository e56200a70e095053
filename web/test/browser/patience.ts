/**
 * patience is how long, in milliseconds, the tests wait for anything: what takes a second on an idle machine takes minutes
 * on a disturbed one. Only a test that fails waits so long;
 * PATIENCE makes it shorter for those who wait for one.
 */
export const patience = Number(process.env.PATIENCE ?? 300_000);
