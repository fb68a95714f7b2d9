-- Every write names its leader's token; one that is older than the newest token seen is refused, in the same transaction.
CREATE TABLE IF NOT EXISTS fence (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), token INTEGER NOT NULL);
INSERT OR IGNORE INTO fence VALUES (1, 0);
CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, token INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS refuse_old BEFORE INSERT ON entry WHEN NEW.token < (SELECT token FROM fence)
BEGIN SELECT RAISE(ABORT, 'refused: a newer leader has taken over'); END;
CREATE TRIGGER IF NOT EXISTS remember_new BEFORE INSERT ON entry WHEN NEW.token > (SELECT token FROM fence)
BEGIN UPDATE fence SET token = NEW.token; END;
