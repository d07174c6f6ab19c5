-- The queries of Nexmark in Flink SQL, nearly those of nexmark-flink: bids and auctions join within ten seconds, and
-- results have keys. Times are numbers of milliseconds since 1970. A line "-- NAME: FIELDS; KEY" begins a query, with the
-- fields of its results and, if they change, their key.

-- q0: auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` BIGINT, extra STRING
SELECT auction, bidder, price, `dateTime`, extra FROM bid

-- q1: auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` BIGINT, extra STRING
SELECT auction, bidder, 0.908 * price, `dateTime`, extra FROM bid

-- q2: auction BIGINT, price BIGINT
SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0

-- q3: name STRING, city STRING, state STRING, id BIGINT; id
SELECT P.name, P.city, P.state, A.id
FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')

-- q4: category BIGINT, final BIGINT; category
SELECT Q.category, AVG(Q.final)
FROM (
  SELECT MAX(B.price) AS final, A.category
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.ts BETWEEN A.ts AND A.ts + INTERVAL '10' SECOND AND B.`dateTime` <= A.expires
  GROUP BY A.id, A.category
) Q
GROUP BY Q.category

-- q5: auction BIGINT, num BIGINT, starttime BIGINT; auction, starttime
SELECT AuctionBids.auction, AuctionBids.num,
  TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', AuctionBids.window_start) * CAST(1000 AS BIGINT)
FROM (
  SELECT auction, COUNT(*) AS num, window_start, window_end
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end
) AS AuctionBids
JOIN (
  SELECT MAX(CountBids.num) AS maxn, CountBids.window_start, CountBids.window_end
  FROM (
    SELECT COUNT(*) AS num, window_start, window_end
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
  ) AS CountBids
  GROUP BY CountBids.window_start, CountBids.window_end
) AS MaxBids
ON AuctionBids.window_start = MaxBids.window_start AND AuctionBids.window_end = MaxBids.window_end
  AND AuctionBids.num >= MaxBids.maxn

-- q7: auction BIGINT, price BIGINT, bidder BIGINT, `dateTime` BIGINT, extra STRING; auction, bidder, `dateTime`, price
SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
FROM bid B
JOIN (
  SELECT MAX(price) AS maxprice, window_time
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end, window_time
) B1
ON B.price = B1.maxprice AND B.ts BETWEEN B1.window_time - INTERVAL '9.999' SECOND AND B1.window_time

-- q8: id BIGINT, name STRING, starttime BIGINT; id, starttime
SELECT P.id, P.name,
  TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', P.window_start) * CAST(1000 AS BIGINT)
FROM (
  SELECT id, name, window_start, window_end
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY id, name, window_start, window_end
) P
JOIN (
  SELECT seller, window_start, window_end
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end
) A
ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end

-- q11: bidder BIGINT, bid_count BIGINT, starttime BIGINT, endtime BIGINT; bidder, starttime
SELECT bidder, COUNT(*), MIN(`dateTime`), MAX(`dateTime`) + 10000
FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end

-- q12: bidder BIGINT, bid_count BIGINT, starttime STRING; bidder, starttime
SELECT bidder, COUNT(*), CAST(window_start AS STRING)
FROM TABLE(TUMBLE(TABLE timed_bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end

-- q15: `day` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, total_bidders BIGINT, rank1_bidders BIGINT, rank2_bidders BIGINT, rank3_bidders BIGINT, total_auctions BIGINT, rank1_auctions BIGINT, rank2_auctions BIGINT, rank3_auctions BIGINT; `day`
SELECT DATE_FORMAT(ts, 'yyyy-MM-dd'), ${figures}
FROM bid
GROUP BY DATE_FORMAT(ts, 'yyyy-MM-dd')

-- q16: channel STRING, `day` STRING, `minute` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, total_bidders BIGINT, rank1_bidders BIGINT, rank2_bidders BIGINT, rank3_bidders BIGINT, total_auctions BIGINT, rank1_auctions BIGINT, rank2_auctions BIGINT, rank3_auctions BIGINT; channel, `day`
SELECT channel, DATE_FORMAT(ts, 'yyyy-MM-dd'), MAX(DATE_FORMAT(ts, 'HH:mm')), ${figures}
FROM bid
GROUP BY channel, DATE_FORMAT(ts, 'yyyy-MM-dd')

-- q17: auction BIGINT, `day` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, min_price BIGINT, max_price BIGINT, avg_price BIGINT, sum_price BIGINT; auction, `day`
SELECT auction, DATE_FORMAT(ts, 'yyyy-MM-dd'), COUNT(*),
  COUNT(*) FILTER (WHERE price < 10000), COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000),
  COUNT(*) FILTER (WHERE price >= 1000000), MIN(price), MAX(price), AVG(price), SUM(price)
FROM bid
GROUP BY auction, DATE_FORMAT(ts, 'yyyy-MM-dd')

-- q18: auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` BIGINT, extra STRING; bidder, auction
SELECT auction, bidder, price, channel, url, `dateTime`, extra
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS rank_number FROM bid)
WHERE rank_number <= 1

-- q19: auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` BIGINT, extra STRING, rank_number BIGINT; auction, rank_number
SELECT auction, bidder, price, channel, url, `dateTime`, extra, rank_number
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid)
WHERE rank_number <= 10

-- q20: auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, bid_dateTime BIGINT, bid_extra STRING, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, auction_dateTime BIGINT, expires BIGINT, seller BIGINT, category BIGINT, auction_extra STRING
SELECT auction, bidder, price, channel, url, B.`dateTime`, B.extra, itemName, description, initialBid, reserve,
  A.`dateTime`, expires, seller, category, A.extra
FROM bid AS B INNER JOIN auction AS A
ON B.auction = A.id AND B.ts BETWEEN A.ts - INTERVAL '10' SECOND AND A.ts + INTERVAL '10' SECOND
WHERE A.category = 10
